//! What the notifications of a message belong to, and what it has used.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_dialects::chimera::UsageUpdateNotification;
use acp_sdk::v1::SessionId;

/// The messages of one connection.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The session of the message that was sent last.
    latest: Option<SessionId>,
    sessions: HashMap<SessionId, Usage>,
}

/// What a session has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// The cost of earlier messages, in US dollars.
    cost_before: f64,
    /// The cost of the latest message.
    cost: f64,
    /// The tokens of the latest message.
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

impl Turns {
    /// Begins a message.
    pub(super) fn begin(&self, session: &SessionId) {
        let mut state = self.lock();
        state.latest = Some(session.clone());
        let usage = state.sessions.entry(session.clone()).or_default();
        *usage = Usage {
            cost_before: usage.cost_before + usage.cost,
            ..Usage::default()
        };
    }

    /// Begins the session `copy` with the cost of the session that it was made from.
    pub(super) fn fork(&self, session: &SessionId, copy: SessionId) {
        let mut state = self.lock();
        let usage = state.sessions.get(session).copied().unwrap_or_default();
        state.sessions.insert(copy, usage);
    }

    /// Returns the session of a notification: the named one, else that of the latest message.
    pub(super) fn session(&self, named: Option<SessionId>) -> Option<SessionId> {
        named.or_else(|| self.lock().latest.clone())
    }

    /// Takes in what the latest message of a session has used; an absent member leaves the value. Returns
    /// the cost of the session if the notification has one.
    pub(super) fn used(
        &self,
        session: &SessionId,
        update: &UsageUpdateNotification,
    ) -> Option<f64> {
        let mut state = self.lock();
        let usage = state.sessions.entry(session.clone()).or_default();
        usage.input_tokens = update.input_tokens.or(usage.input_tokens);
        usage.output_tokens = update.output_tokens.or(usage.output_tokens);
        usage.cost = update.total_cost?;
        Some(usage.cost_before + usage.cost)
    }

    /// Returns what the latest message of a session has used.
    pub(super) fn usage(&self, session: &SessionId) -> Usage {
        let state = self.lock();
        state.sessions.get(session).copied().unwrap_or_default()
    }

    /// A std mutex suffices: it is never held across an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
