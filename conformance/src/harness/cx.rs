//! What a check is given: connections to the agent.
//!
//! Starting an agent may take seconds, so checks that leave a connection as they
//! found it share one, an initialized one with all capabilities. A connection that
//! somebody still waits on, or on which a check failed, is not used again.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Caps, Conn, Consent, Entry, Env, Failure, Outcome, Recording, Terminals, Transcripts,
    UserInput, cleanup,
};
use crate::wire::Party;

/// Connections for checks.
#[derive(Debug)]
pub struct Cx {
    env: Arc<Env>,
    shared: Option<Conn>,
    fresh: Vec<Conn>,
    done: Vec<Recording>,
    /// Where the current check begins on the shared connection, and among the recordings.
    begin: [usize; 2],
    transcripts: Option<Arc<Transcripts>>,
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
            begin: [0; 2],
            transcripts: None,
        }
    }

    /// Keeps what is said in this folder, if there is one.
    pub(crate) fn kept_in(mut self, transcripts: Option<Arc<Transcripts>>) -> Self {
        self.transcripts = transcripts;
        self
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
        let mut conn = match self.shared.take() {
            Some(conn) => conn,
            None => {
                let mut conn = Conn::start(self.env.clone())?;
                if let Err(stop) = conn.open(&Caps::Full) {
                    self.done.push(conn.into_recording());
                    return Err(stop);
                }
                conn
            }
        };
        conn.script.consent = Consent::default();
        conn.script.input = UserInput::default();
        conn.script.terminals = Terminals::default();
        conn.script.refused = None;
        Ok(self.shared.insert(conn))
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
            None => super::fail("there is no connection"),
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

    /// Ends the connections of the check's own, whose sessions are left as they are: another
    /// connection opens them again.
    pub fn end_fresh(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        self.done
            .extend(fresh.into_iter().map(Conn::into_recording));
    }

    /// Returns how many connections of its own the check has opened.
    pub(crate) fn starts(&self) -> usize {
        let [_, done] = self.begin;
        self.fresh.len() + self.done.len().saturating_sub(done)
    }

    /// Begins a check.
    pub(crate) fn begin(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.begin_check();
        }
        let shared = self.shared.as_ref().map_or(0, Conn::mark);
        self.begin = [shared, self.done.len()];
    }

    /// Returns what was said since the check began: recordings, each with its first place.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&Recording, usize)> {
        let [mark, done] = self.begin;
        let done = self.done.iter().skip(done).map(|recording| (recording, 0));
        let fresh = self.fresh.iter().map(|conn| (conn.recording(), 0));
        let shared = self.shared.iter();
        let shared = shared.map(move |conn| (conn.recording(), mark.min(conn.mark())));
        done.chain(fresh).chain(shared)
    }

    /// Returns how many prompts were sent since the check began.
    pub(crate) fn prompts(&self) -> usize {
        self.said().map(|(all, from)| prompts(all, from)).sum()
    }

    /// Returns a path for which permission was refused during the check, because it is outside of the
    /// suite's directory.
    pub(crate) fn refused(&self) -> Option<&String> {
        let mut conns = self.fresh.iter().chain(&self.shared);
        conns.find_map(|conn| conn.script.refused.as_ref())
    }

    /// Returns why the suite has ended an agent during the check, if it has.
    pub(crate) fn flood(&self) -> Option<String> {
        let mut conns = self.fresh.iter().chain(&self.shared);
        conns.find_map(Conn::flood)
    }

    /// Returns the failure of an agent that has ended by itself in a turn of the check, if one has.
    pub(crate) fn ended_in_a_turn(&mut self) -> Option<Failure> {
        let mut conns = self.fresh.iter_mut().chain(&mut self.shared);
        conns.find_map(Conn::ended_in_a_turn)
    }

    /// Returns whether the check has called such a method.
    pub(crate) fn has_sent(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.said().any(|(all, from)| {
            let mut sent = all.entries.iter().skip(from);
            sent.any(|entry| {
                let method = entry.method.as_deref().unwrap_or_default();
                entry.from == Party::Client && entry.is_call() && is_wanted(method)
            })
        })
    }

    /// Writes what was said since the check began, a file for each connection. Returns the files'
    /// names.
    pub(crate) fn write_down(&self, name: &str) -> Vec<String> {
        let Some(transcripts) = &self.transcripts else {
            return Vec::new();
        };
        let said = self.said();
        said.filter_map(|(recording, from)| transcripts.write(name, recording, from))
            .collect()
    }

    /// Ends a check.
    pub(crate) fn end(&mut self, passed: bool) {
        let fresh = std::mem::take(&mut self.fresh);
        self.done.extend(fresh.into_iter().map(cleanup::end));
        if let Some(conn) = self.shared.take() {
            if passed && conn.is_clean() && !conn.is_heavy() {
                self.shared = Some(conn);
            } else {
                self.done.push(cleanup::end(conn));
            }
        }
    }

    /// Ends all connections and yields what was said on them.
    pub(crate) fn finish(mut self) -> Vec<Recording> {
        self.end(false);
        self.done
    }
}

/// How many prompts the client has sent from a place on.
pub(crate) fn prompts(recording: &Recording, from: usize) -> usize {
    let prompts = recording.calls(Party::Client, "session/prompt");
    let reaches_model = |prompt: &Entry| {
        let blocks = prompt.params().get("prompt");
        blocks
            .and_then(Value::as_array)
            .is_some_and(|blocks| !blocks.is_empty())
    };
    let prompts = prompts.filter(|(index, prompt)| *index >= from && reaches_model(prompt));
    prompts.count()
}
