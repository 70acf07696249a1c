//! What a check is given: connections to the agent.
//!
//! Starting an agent may take seconds, so checks that leave a connection as they
//! found it share one, an initialized one with all capabilities. A connection that
//! somebody still waits on, or on which a check failed, is not used again.

use std::sync::Arc;

use crate::harness::{Caps, Conn, Consent, Env, Outcome, Recording, Terminals, UserInput};

/// Connections for checks.
#[derive(Debug)]
pub struct Cx {
    env: Arc<Env>,
    shared: Option<Conn>,
    fresh: Vec<Conn>,
    done: Vec<Recording>,
}

impl Cx {
    /// No connections yet.
    #[must_use]
    pub fn new(env: Arc<Env>) -> Self {
        Self {
            env,
            shared: None,
            fresh: Vec::new(),
            done: Vec::new(),
        }
    }

    /// What all connections share.
    #[must_use]
    pub fn env(&self) -> &Arc<Env> {
        &self.env
    }

    /// An initialized connection with all capabilities, which other checks use
    /// before and after.
    ///
    /// # Errors
    /// When the agent does not get that far.
    pub fn ready(&mut self) -> Outcome<&mut Conn> {
        if self.shared.is_none() {
            let mut conn = Conn::start(self.env.clone())?;
            if let Err(stop) = conn.open(&Caps::Full) {
                self.done.push(conn.into_recording());
                return Err(stop);
            }
            self.shared = Some(conn);
        }
        match &mut self.shared {
            Some(conn) => {
                conn.script.consent = Consent::default();
                conn.script.input = UserInput::default();
                conn.script.terminals = Terminals::default();
                Ok(conn)
            }
            None => crate::harness::fail("there is no connection"),
        }
    }

    /// A connection of the check's own on which nothing was said.
    ///
    /// # Errors
    /// When the agent cannot be started.
    pub fn fresh(&mut self) -> Outcome<&mut Conn> {
        let conn = Conn::start(self.env.clone())?;
        self.fresh.push(conn);
        match self.fresh.last_mut() {
            Some(conn) => Ok(conn),
            None => crate::harness::fail("there is no connection"),
        }
    }

    /// An initialized connection of the check's own with these capabilities.
    ///
    /// # Errors
    /// When the agent does not get that far.
    pub fn with(&mut self, caps: &Caps) -> Outcome<&mut Conn> {
        let conn = self.fresh()?;
        conn.open(caps)?;
        Ok(conn)
    }

    /// An initialized connection of the check's own with all capabilities.
    ///
    /// # Errors
    /// When the agent does not get that far.
    pub fn connected(&mut self) -> Outcome<&mut Conn> {
        self.with(&Caps::Full)
    }

    /// Ends a check.
    pub(super) fn end(&mut self, passed: bool) {
        let fresh = std::mem::take(&mut self.fresh);
        self.done
            .extend(fresh.into_iter().map(Conn::into_recording));
        if let Some(conn) = self.shared.take() {
            if passed && conn.is_clean() {
                self.shared = Some(conn);
            } else {
                self.done.push(conn.into_recording());
            }
        }
    }

    /// Ends all connections and yields what was said on them.
    pub(super) fn finish(mut self) -> Vec<Recording> {
        self.end(false);
        self.done
    }
}
