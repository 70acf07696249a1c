//! The sessions that are active, by their id.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;

use super::Session;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    active: Mutex<HashMap<SessionId, Session>>,
}

impl Sessions {
    pub(crate) fn find(&self, id: &SessionId) -> Option<Session> {
        self.active().get(id).cloned()
    }

    /// Takes a session in, unless another one of its id is active: that one is the session.
    pub(crate) fn enter(&self, session: Session) -> Session {
        let mut active = self.active();
        match active.get(session.id()) {
            Some(other) if !other.queue().is_closed() => other.clone(),
            _ => {
                active.insert(session.id().clone(), session.clone());
                session
            }
        }
    }

    /// Forgets this very session, and not one that has been loaded in its place.
    pub(crate) fn leave(&self, session: &Session) {
        let mut active = self.active();
        if active
            .get(session.id())
            .is_some_and(|other| other.is(session))
        {
            active.remove(session.id());
        }
    }

    fn active(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
