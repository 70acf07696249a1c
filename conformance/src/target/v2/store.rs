//! Where the reference agent of version 2 keeps sessions: in memory, for all its connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::settings::Settings;

/// How many sessions are kept at most; the oldest ones go.
const SESSIONS: usize = 10_000;

/// Sessions by id. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Numbers of sessions, messages and requests.
    last: u64,
    sessions: BTreeMap<String, Stored>,
}

/// What is kept of a session.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) cwd: Value,
    pub(super) history: Vec<Value>,
    pub(super) settings: Settings,
}

impl Store {
    /// A panic under the lock leaves whole sessions.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next number, which no connection had before.
    pub(super) fn number(&self) -> u64 {
        let mut inner = self.inner();
        inner.last += 1;
        inner.last
    }

    /// Keeps a session in place of what was kept of it.
    pub(super) fn put(&self, id: &str, session: &Stored) {
        let mut inner = self.inner();
        inner.sessions.insert(id.to_owned(), session.clone());
        if inner.sessions.len() > SESSIONS {
            inner.sessions.pop_first();
        }
    }

    /// Returns a session.
    pub(super) fn get(&self, id: &str) -> Option<Stored> {
        self.inner().sessions.get(id).cloned()
    }

    /// Removes a session.
    pub(super) fn remove(&self, id: &str) {
        self.inner().sessions.remove(id);
    }

    /// Returns all sessions with their directories.
    pub(super) fn directories(&self) -> Vec<(String, Value)> {
        let inner = self.inner();
        let sessions = inner.sessions.iter();
        sessions
            .map(|(id, session)| (id.clone(), session.cwd.clone()))
            .collect()
    }
}
