//! Rules that were remembered in a session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::v1::SessionId;

use super::Rule;

/// Sessions whose rules are remembered; of more, those of the oldest are forgotten.
const MOST_SESSIONS: usize = 1000;

/// Rules of a session; of more, the oldest are forgotten.
const MOST_RULES: usize = 1000;

/// The rules of sessions. A rule that is forgotten only means that somebody is asked again.
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
        keep_latest(list, MOST_RULES);
        sessions.push_back((session.clone(), rules));
        keep_latest(&mut sessions, MOST_SESSIONS);
    }
}

/// Drops the oldest beyond a number.
fn keep_latest<T>(list: &mut VecDeque<T>, most: usize) {
    let excess = list.len().saturating_sub(most);
    list.drain(..excess);
}
