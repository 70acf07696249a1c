//! Sessions that leave memory because others need the room, although clients are attached to them.
//!
//! Only an idle session does, whose clients were sent everything. What is not in its record is kept
//! here, little compared to the session. Whoever uses it opens it again, and its clients are attached as
//! before.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use acp_sdk::v1::SessionId;

use super::ServerCore;
use super::joining::attach;
use super::opening::OpeningClient;
use crate::connection::{Client, ClientId, Replay};
use crate::session::Environment;
use crate::turn::Decision;
use crate::{Policies, Session};

/// How many sessions may be suspended for each one that may be in memory.
const SUSPENDED: usize = 16;

/// What a session needs to be opened again.
#[derive(Debug)]
pub(crate) struct Suspended {
    clients: Vec<SuspendedClient>,
    pub(super) environment: Environment,
    policies: Policies,
    /// Answers "always".
    remembered: HashMap<String, Decision>,
}

#[derive(Debug)]
struct SuspendedClient {
    id: ClientId,
    client: Weak<Client>,
    /// The last event that it was sent.
    after: u64,
}

impl Suspended {
    pub(super) fn forget(&mut self, client: ClientId) {
        self.clients.retain(|suspended| suspended.id != client);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// The session is deleted: its clients are attached no more.
    pub(super) fn end(self, id: &SessionId) {
        let clients = self.clients.iter().filter_map(|old| old.client.upgrade());
        clients.for_each(|client| client.forget_suspended(id));
    }

    /// Returns what the handler learns of the first client that may change the session.
    pub(super) fn opening(&self) -> OpeningClient {
        let clients = self.clients.iter().filter_map(|old| old.client.upgrade());
        let mut writing = clients.filter(|client| client.access().may_write());
        let client = writing.next();
        client.map(|client| client.opening()).unwrap_or_default()
    }

    /// The session is open again: it has what it had, and its clients are attached.
    pub(super) fn restore(self, session: &Session) {
        {
            let mut state = session.state();
            state.policies = self.policies;
            state.remembered = self.remembered;
        }
        for SuspendedClient { client, after, .. } in self.clients {
            let Some(client) = client.upgrade() else {
                continue;
            };
            // A client that has gone meanwhile is not attached.
            if let Ok(joined) = attach(&client, session.clone(), Replay::After(after)) {
                drop(joined.attachment.keep());
            }
        }
    }
}

impl ServerCore {
    /// Takes the idle session out of memory that was used the longest time ago; `false` if all are in use.
    pub(super) async fn make_room(&self) -> bool {
        let mut sessions = self.sessions.all();
        sessions.sort_by_cached_key(Session::used);
        for session in sessions {
            if self.suspend_idle(&session).await {
                return true;
            }
        }
        false
    }

    /// Takes a session out of memory if it is idle; `false` if it is in use.
    async fn suspend_idle(&self, session: &Session) -> bool {
        // One that is being opened, closed or forked is in use. Waiting could be for a task that
        // waits for this one.
        let Some(_locked) = self.sessions.try_lock(session.id()) else {
            return false;
        };
        if self.sessions.find(session.id()).as_ref() != Some(session) {
            return false;
        }
        if !self.handler.may_unload(session) || !session.begin_suspension() {
            return false;
        }
        self.suspend(session).await;
        true
    }

    /// Refuses prompts from now on, and takes idle sessions out of memory: other servers of the store can open
    /// them while turns of others go on here. Waits until all turns have ended.
    pub(super) async fn drain(self: &Arc<Self>) {
        self.draining.store(true, Ordering::Release);
        let sessions = self.sessions.all();
        for session in &sessions {
            let session = session.clone();
            let suspended = self.finish(|core| async move {
                core.suspend_idle(&session).await;
                Ok(())
            });
            // Only a panic is an error here. The session is closed at the end.
            let _ = suspended.await;
        }
        for session in sessions {
            session.idle().await;
        }
    }

    /// Suspends a session, for who has locked its id, and after it has been closed for prompts.
    async fn suspend(&self, session: &Session) {
        let (clients, suspended) = {
            let mut state = session.state();
            let clients = std::mem::take(&mut state.clients);
            let suspended = Suspended {
                clients: clients
                    .iter()
                    .map(|attached| SuspendedClient {
                        id: attached.client.id(),
                        client: Arc::downgrade(&attached.client),
                        after: attached.subscription.delivered(),
                    })
                    .collect(),
                environment: state.environment.clone(),
                policies: state.policies.clone(),
                remembered: std::mem::take(&mut state.remembered),
            };
            (clients, suspended)
        };
        if !suspended.is_empty() {
            self.sessions.suspend(session.id(), suspended);
        }
        for attached in clients {
            if !attached.client.suspend(session) {
                self.sessions
                    .forget_client(session.id(), attached.client.id());
            }
        }
        self.deactivate(session).await;
        tracing::debug!(session = %session.id(), "suspended a session to make room");
    }

    /// Whether a further session with clients may be suspended.
    pub(crate) fn may_suspend_attached(&self) -> bool {
        self.sessions.suspended() < self.limits.sessions.saturating_mul(SUSPENDED)
    }
}

impl Session {
    /// Closes the session for prompts if it is idle, and its clients need nothing of it.
    fn begin_suspension(&self) -> bool {
        if self.log().last() != self.log().committed() {
            return false;
        }
        let last = self.last_event();
        // Opened again, it could have events that clients count as lost.
        let is_certain = !self.log().has_failed() && self.core().may_suspend_attached();
        let mut state = self.state();
        let may_detach = state.clients.is_empty() || is_certain;
        let are_settled = |attached: &crate::session::Attached| {
            // Streams over HTTP know of the session's subscription.
            attached.client.gate().is_none() && attached.subscription.is_settled(last)
        };
        let can = may_detach && state.questions.is_empty() && state.clients.iter().all(are_settled);
        can && state.queue.close_if_idle()
    }
}
