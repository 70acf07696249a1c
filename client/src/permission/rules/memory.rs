//! Rules that are remembered in a session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::v1::SessionId;

use super::Rule;

/// The maximum number of sessions with rules. The rules of the oldest sessions are dropped first.
const MAX_SESSIONS: usize = 1000;

/// The maximum number of rules of a session. The oldest are dropped first.
const MAX_RULES: usize = 1000;

/// The remembered rules of all sessions. After a rule is dropped, the user is asked again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    sessions: Mutex<VecDeque<(SessionId, Arc<VecDeque<Rule>>)>>,
}

impl Memory {
    pub(super) fn rules(&self, session: &SessionId) -> Arc<VecDeque<Rule>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = sessions.iter();
        known
            .find(|(id, _)| id == session)
            .map(|(_, rules)| rules.clone())
            .unwrap_or_default()
    }

    pub(super) fn add(&self, session: &SessionId, rule: Rule) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = sessions.iter().position(|(id, _)| id == session);
        let mut rules = match known.and_then(|index| sessions.remove(index)) {
            Some((_, rules)) => rules,
            None => Arc::default(),
        };
        let list = Arc::make_mut(&mut rules);
        list.push_back(rule);
        keep_latest(list, MAX_RULES);
        sessions.push_back((session.clone(), rules));
        keep_latest(&mut sessions, MAX_SESSIONS);
    }
}

/// Drops the oldest entries beyond `most`.
fn keep_latest<T>(list: &mut VecDeque<T>, most: usize) {
    let excess = list.len().saturating_sub(most);
    list.drain(..excess);
}
