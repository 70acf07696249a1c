//! The sessions that are active, by their id, and who is opening or closing one.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;
use tokio::sync::Notify;

use super::Session;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    /// Told when a session is no longer being opened or closed.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Table {
    active: HashMap<SessionId, Session>,
    /// Being opened or closed.
    unsettled: HashSet<SessionId>,
}

impl Sessions {
    pub(crate) fn find(&self, id: &SessionId) -> Option<Session> {
        self.table().active.get(id).cloned()
    }

    pub(crate) fn enter(&self, session: Session) {
        self.table().active.insert(session.id().clone(), session);
    }

    pub(crate) fn leave(&self, id: &SessionId) {
        self.table().active.remove(id);
    }

    /// Waits until nobody else opens or closes this session. It takes a while to do so, and
    /// the handler must not see a session opened before it was closed, or opened twice.
    pub(crate) async fn settle(&self, id: &SessionId) -> Settling<'_> {
        loop {
            let mut settled = std::pin::pin!(self.settled.notified());
            // Registered before the look, or an end in between would be missed.
            settled.as_mut().enable();
            if self.table().unsettled.insert(id.clone()) {
                return Settling {
                    sessions: self,
                    id: id.clone(),
                };
            }
            settled.await;
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to open or close a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct Settling<'a> {
    sessions: &'a Sessions,
    id: SessionId,
}

impl Drop for Settling<'_> {
    fn drop(&mut self) {
        self.sessions.table().unsettled.remove(&self.id);
        self.sessions.settled.notify_waiters();
    }
}
