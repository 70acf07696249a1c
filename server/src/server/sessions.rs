//! The open sessions by their id, and the locks of those that are being opened or closed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;
use tokio::sync::Notify;

use crate::Session;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    /// Notified when a lock is released.
    unlocked: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<SessionId, Session>,
    locked: HashSet<SessionId>,
}

impl Sessions {
    pub(crate) fn find(&self, id: &SessionId) -> Option<Session> {
        self.table().open.get(id).cloned()
    }

    pub(crate) fn ids(&self) -> Vec<SessionId> {
        self.table().open.keys().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Session> {
        self.table().open.values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.table().open.len()
    }

    /// Enters a session, unless there are `limit` already.
    pub(crate) fn enter(&self, session: &Session, limit: usize) -> bool {
        let mut table = self.table();
        if table.open.len() >= limit {
            return false;
        }
        table.open.insert(session.id().clone(), session.clone());
        true
    }

    pub(crate) fn remove(&self, id: &SessionId) {
        let removed = self.table().open.remove(id);
        drop(removed);
    }

    /// Removes all sessions. Values of the application are dropped without the lock.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut self.table().open);
        drop(all);
    }

    /// Waits until nothing else opens, closes, forks or deletes this session, and locks it.
    pub(crate) async fn lock(&self, id: &SessionId) -> Locked<'_> {
        loop {
            let mut unlocked = std::pin::pin!(self.unlocked.notified());
            // Registered before the check, or a release in between would be missed.
            unlocked.as_mut().enable();
            if self.table().locked.insert(id.clone()) {
                return Locked {
                    sessions: self,
                    id: id.clone(),
                };
            }
            unlocked.await;
        }
    }

    /// The last turn of a session has ended.
    pub(crate) fn became_idle(&self, session: &Session) {
        session.core().unload_later(session);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock of a session's id, until it is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    sessions: &'a Sessions,
    id: SessionId,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.sessions.table().locked.remove(&self.id);
        self.sessions.unlocked.notify_waiters();
    }
}
