//! The runtime: an agent made of a handler, with sessions that keep the protocol's promises.

mod agent;
mod announce;
mod check;
mod connection;

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{HandlerError, HandlerResult};

use crate::session::{Session, Sessions, Surroundings};
use crate::store::{MemoryStore, SessionRecord, Store};
use crate::{Handler, Profile};
use connection::Connection;

/// An agent that serves one client, made of a [`Handler`].
///
/// It implements [`acp_sdk::v1::Agent`]; hand it to [`acp_sdk::serve`] or use
/// [`serve_stdio`](crate::serve_stdio).
///
/// # What it does
///
/// - **Sessions** are created, listed, loaded with a full replay, resumed without one, closed
///   and deleted. A closed session frees what is active and stays in the list until it is
///   deleted; prompts need it to be loaded or resumed first.
/// - **Prompts** of one session are answered in the order of arrival. Up to 16 wait, of 64 MiB
///   in all; more are refused with `-32600`.
/// - **`session/cancel`** is for all prompts of the session that have arrived, and never for a
///   later one. Each ends with the stop reason `cancelled`.
/// - **Before `initialize`** every request but unknown methods is refused with `-32600`.
/// - **After `logout`** no session is opened until the client has authenticated; those that
///   are active go on.
pub struct Runtime<H> {
    handler: H,
    profile: Profile,
    store: Arc<dyn Store>,
    sessions: Sessions,
    connection: Connection,
    grace: Duration,
    ids: SessionIds,
}

impl<H: Handler> Runtime<H> {
    /// An agent that keeps its sessions in memory.
    pub fn new(handler: H) -> Self {
        let profile = handler.profile();
        Self {
            connection: Connection::new(!profile.auth_required),
            handler,
            profile,
            store: Arc::new(MemoryStore::new()),
            sessions: Sessions::default(),
            grace: Duration::ZERO,
            ids: SessionIds::new(),
        }
    }

    /// Where sessions are kept (default: a [`MemoryStore`]).
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// How long a handler may go on in a cancelled turn (default: not at all). Until then it
    /// can still send updates; what it asks of the client fails.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    async fn create(&self, cwd: &str, surroundings: Surroundings) -> HandlerResult<Session> {
        let mut record = SessionRecord::new(self.ids.next(), cwd);
        record
            .additional_directories
            .clone_from(&surroundings.additional_directories);
        let session = Session::new(&record, 0, surroundings);
        // Before it is stored: a session that was never opened, be it by an error, a panic or
        // because nobody waits for it any more, must not be found in a list.
        let settings = self.handler.open(&session).await?;
        if let Err(reason) = self.store.create(&record).await {
            self.handler.close(&session).await;
            return Err(store_failed(&record.id, &reason));
        }
        session.set(|current| *current = settings);
        self.sessions.enter(session.clone());
        Ok(session)
    }

    /// Makes a session active that is known, whether or not it is active already.
    async fn reopen(
        &self,
        id: &SessionId,
        cwd: &str,
        surroundings: Surroundings,
    ) -> HandlerResult<Session> {
        let _settling = self.sessions.settle(id).await;
        let record = self.record(id).await?.ok_or_else(|| not_found(id))?;
        if record.cwd != cwd {
            let reason = format!("session {id} works in {:?}, not in {cwd:?}", record.cwd);
            return Err(HandlerError::invalid_params("/cwd", reason));
        }
        if let Some(session) = self.sessions.find(id) {
            session.surround(surroundings);
            self.save(&session).await?;
            return Ok(session);
        }
        let last = self.store.last(id).await;
        let last = last.map_err(|reason| store_failed(id, &reason))?;
        let session = Session::new(&record, last, surroundings);
        let mut settings = self.handler.open(&session).await?;
        settings.restore(&record.settings);
        session.set(|current| *current = settings);
        if let Err(error) = self.save(&session).await {
            self.handler.close(&session).await;
            return Err(error);
        }
        self.sessions.enter(session.clone());
        Ok(session)
    }

    /// An active session.
    ///
    /// # Errors
    ///
    /// Resource not found, with words that say whether it is closed or was never there.
    async fn active(&self, id: &SessionId) -> HandlerResult<Session> {
        if let Some(session) = self.sessions.find(id).filter(|s| !s.queue().is_closed()) {
            return Ok(session);
        }
        Err(match self.record(id).await? {
            Some(_) => closed(id),
            None => not_found(id),
        })
    }

    /// Ends what runs in a session and frees it; `false` if it is not active.
    async fn deactivate(&self, id: &SessionId) -> bool {
        let _settling = self.sessions.settle(id).await;
        let Some(session) = self.sessions.find(id) else {
            return false;
        };
        session.queue().close().await;
        // Before the handler frees what it holds: should it fail, the session is closed still.
        self.sessions.leave(id);
        self.handler.close(&session).await;
        true
    }

    async fn record(&self, id: &SessionId) -> HandlerResult<Option<SessionRecord>> {
        let found = self.store.find(id).await;
        found.map_err(|reason| store_failed(id, &reason))
    }

    async fn save(&self, session: &Session) -> HandlerResult<()> {
        let saved = self.store.save(&session.record()).await;
        saved.map_err(|reason| store_failed(session.id(), &reason))
    }
}

impl<H: Handler + Default> Default for Runtime<H> {
    fn default() -> Self {
        Self::new(H::default())
    }
}

impl<H> fmt::Debug for Runtime<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// Ids that no other process gives: a client that kept one across a restart must not find
/// another conversation under it.
#[derive(Debug)]
struct SessionIds {
    process: u64,
    last: AtomicU64,
}

impl SessionIds {
    fn new() -> Self {
        // The standard library's hasher is the one source of chance that needs no crate.
        let process = RandomState::new().build_hasher().finish();
        let last = AtomicU64::new(0);
        Self { process, last }
    }

    fn next(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("session-{:016x}-{number}", self.process)
    }
}

fn not_found(id: &SessionId) -> HandlerError {
    HandlerError::resource_not_found(format!("session {id}"))
}

fn closed(id: &SessionId) -> HandlerError {
    let reason = format!("session {id} is closed; load or resume it first");
    HandlerError::new(ErrorCode::RESOURCE_NOT_FOUND, reason)
}

fn store_failed(id: &SessionId, reason: &str) -> HandlerError {
    HandlerError::internal(format!("the store of session {id}: {reason}"))
}
