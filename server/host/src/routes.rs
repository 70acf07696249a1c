//! Which session of ours an agent's session is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use acp_server::internal::raw_object::RawObject;

use super::session::HostedSession;

/// Updates of sessions that are not known yet.
const EARLY: usize = 256;

/// URL elicitations whose end the agent has not announced.
const ELICITATIONS: usize = 1_024;

/// The sessions of a process, by the agent's ids.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<RouteState>);

#[derive(Debug, Default)]
struct RouteState {
    sessions: HashMap<String, Weak<HostedSession>>,
    /// Sessions that are being opened. An agent may send updates before it has said which they are.
    creating: usize,
    /// Those updates, with the agent's ids.
    early: Vec<(String, RawObject)>,
    elicitations: HashMap<String, Weak<HostedSession>>,
}

/// Keeps updates of sessions that are not known yet, until it is dropped.
#[derive(Debug)]
pub(super) struct Creating(Arc<Routes>);

impl Drop for Creating {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.creating -= 1;
        if state.creating == 0 {
            state.early.clear();
        }
    }
}

impl Routes {
    /// A session is going to be opened.
    pub(super) fn creating(self: &Arc<Self>) -> Creating {
        self.state().creating += 1;
        Creating(self.clone())
    }

    /// Returns whether no session is entered.
    pub(super) fn is_empty(&self) -> bool {
        self.state().sessions.is_empty()
    }

    /// Returns whether a session has a terminal open, in which something may run for the agent.
    pub(super) fn has_terminals(&self) -> bool {
        // A session that is dropped outside of the lock locks it.
        let sessions: Vec<_> = self.state().sessions.values().cloned().collect();
        let mut open = sessions.iter().filter_map(Weak::upgrade);
        open.any(|session| session.terminals(|terminals| !terminals.is_empty()))
    }

    /// Enters a session. Returns the updates that came before.
    pub(super) fn enter(&self, id: &str, session: &Arc<HostedSession>) -> Vec<RawObject> {
        let mut state = self.state();
        state
            .sessions
            .insert(id.to_owned(), Arc::downgrade(session));
        let early = std::mem::take(&mut state.early);
        let (its, others): (Vec<_>, _) = early.into_iter().partition(|(of, _)| of == id);
        state.early = others;
        its.into_iter().map(|(_, params)| params).collect()
    }

    /// Removes a session, unless another one has its place.
    pub(super) fn leave(&self, id: &str, session: *const HostedSession) {
        let mut state = self.state();
        if let Some(entered) = state.sessions.get(id)
            && std::ptr::eq(entered.as_ptr(), session)
        {
            state.sessions.remove(id);
        }
    }

    /// Returns the session of an update, or keeps the update if its session may come.
    pub(super) fn route(&self, id: &str, params: &RawObject) -> Option<Arc<HostedSession>> {
        let mut state = self.state();
        let found = state.sessions.get(id).and_then(Weak::upgrade);
        if found.is_none() && state.creating > 0 && state.early.len() < EARLY {
            state.early.push((id.to_owned(), params.clone()));
        }
        found
    }

    /// Returns the session of a request.
    pub(super) fn find(&self, id: &str) -> Option<Arc<HostedSession>> {
        self.state().sessions.get(id).and_then(Weak::upgrade)
    }

    /// A session has asked for something at a URL.
    pub(super) fn elicits(&self, id: String, session: &Arc<HostedSession>) {
        let mut state = self.state();
        if state.elicitations.len() < ELICITATIONS {
            state.elicitations.insert(id, Arc::downgrade(session));
        }
    }

    /// Returns the session whose elicitation is complete.
    pub(super) fn elicited(&self, id: &str) -> Option<Arc<HostedSession>> {
        self.state().elicitations.remove(id)?.upgrade()
    }

    fn state(&self) -> MutexGuard<'_, RouteState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
