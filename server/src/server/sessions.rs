//! The open sessions by their id, and the locks of those that are being opened or closed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::HandlerResult;
use acp_sdk::v1::SessionId;
use tokio::sync::Notify;

use super::suspending::Suspended;
use super::tasks::shutting_down;
use crate::Session;
use crate::connection::ClientId;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    /// Notified when a lock is released.
    unlocked: Notify,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<SessionId, Session>,
    /// Sessions that have left memory while clients were attached.
    suspended: HashMap<SessionId, Suspended>,
    /// Whether no further session may be entered.
    closed: bool,
    locked: HashSet<SessionId>,
}

impl Sessions {
    pub(crate) fn find(&self, id: &SessionId) -> Option<Session> {
        self.table().open.get(id).cloned()
    }

    /// Refuses further sessions; returns those that are open.
    pub(crate) fn close(&self) -> Vec<Session> {
        let mut table = self.table();
        table.closed = true;
        table.open.values().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Session> {
        self.table().open.values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.table().open.len()
    }

    /// Enters a session.
    ///
    /// # Errors
    ///
    /// When there are `limit` already, or the server shuts down.
    pub(crate) fn enter(&self, session: &Session, limit: usize) -> HandlerResult<()> {
        let mut table = self.table();
        if table.closed {
            return Err(shutting_down());
        }
        if table.open.len() >= limit {
            let reason = format!(
                "{limit} sessions are open and in use, which is the limit; close one first"
            );
            return Err(crate::Error::Full(reason).into());
        }
        table.open.insert(session.id().clone(), session.clone());
        Ok(())
    }

    pub(super) fn suspended(&self) -> usize {
        self.table().suspended.len()
    }

    /// Keeps what a session needs to be opened again, for who has locked its id.
    pub(super) fn suspend(&self, id: &SessionId, suspended: Suspended) {
        self.table().suspended.insert(id.clone(), suspended);
    }

    /// Returns what a session needs to be opened again, which is kept no more.
    pub(super) fn take_suspended(&self, id: &SessionId) -> Option<Suspended> {
        self.table().suspended.remove(id)
    }

    /// A client is attached no more to a session that is suspended.
    pub(crate) fn forget_client(&self, id: &SessionId, client: ClientId) {
        let mut table = self.table();
        if let Some(suspended) = table.suspended.get_mut(id) {
            suspended.forget(client);
            if suspended.is_empty() {
                table.suspended.remove(id);
            }
        }
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

    /// Locks a session, unless it is locked.
    pub(super) fn try_lock(&self, id: &SessionId) -> Option<Locked<'_>> {
        let is_free = self.table().locked.insert(id.clone());
        is_free.then(|| Locked {
            sessions: self,
            id: id.clone(),
        })
    }

    /// Waits until nothing else opens, closes, forks or deletes this session, and locks it.
    pub(crate) async fn lock(&self, id: &SessionId) -> Locked<'_> {
        loop {
            let mut unlocked = std::pin::pin!(self.unlocked.notified());
            // Registered before the check, or a release in between would be missed.
            unlocked.as_mut().enable();
            if let Some(locked) = self.try_lock(id) {
                return locked;
            }
            unlocked.await;
        }
    }

    /// The last turn of a session has ended.
    pub(crate) fn became_idle(&self, session: &Session) {
        session.set_used();
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
