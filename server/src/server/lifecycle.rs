//! Opening, joining, closing, forking and deleting sessions.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use acp_sdk::v1::{ClientCapabilities, Implementation, SessionId};
use acp_sdk::{HandlerError, HandlerResult, Meta};

use super::{Core, NextSession};
use crate::connection::{Barrier, Client, Encoding, Replay, Subscription, check, store_failed};
use crate::handler::HandlerState;
use crate::limits::OnDisconnect;
use crate::log::Log;
use crate::session::{Attached, Environment, Opening, OpeningKind};
use crate::store::{ListQuery, SessionRecord, StoreError, StoreErrorKind};
use crate::{Session, Settings};

/// Time for clients to be sent the last events of a session that is closed.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// What the handler is told of the client that opens a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpeningClient {
    pub(crate) capabilities: Arc<ClientCapabilities>,
    pub(crate) info: Option<Implementation>,
    pub(crate) meta: Option<Meta>,
}

/// Which session a client joins.
#[derive(Debug)]
pub(crate) enum Joining {
    New {
        cwd: String,
        environment: Environment,
        opening: OpeningClient,
    },
    Existing {
        id: SessionId,
        /// The working directory, which must be the session's, and the rest; `None` keeps both.
        place: Option<(String, Environment)>,
        opening: OpeningClient,
    },
    Fork {
        source: SessionId,
        up_to: Option<u64>,
        cwd: Option<String>,
        opening: OpeningClient,
    },
}

/// A client's part in a session.
pub(crate) struct Joined {
    pub(crate) session: Session,
    pub(crate) subscription: Arc<Subscription>,
    /// The last event of the replay.
    pub(crate) last: u64,
    /// Holds what follows the replay until the request is answered.
    pub(crate) barrier: Barrier,
}

impl Core {
    /// Opens a session if need be, and attaches a client to it.
    pub(crate) async fn join(
        self: &Arc<Self>,
        client: &Arc<Client>,
        joining: Joining,
        replay: Replay,
        encoding: impl FnOnce() -> Encoding,
    ) -> HandlerResult<Joined> {
        match joining {
            Joining::New {
                cwd,
                environment,
                opening,
            } => {
                let next = self.take_next_session();
                let Some(id) = self.existing(next.as_ref(), &cwd).await? else {
                    let name = match next {
                        Some(NextSession::Named(name)) => Some(name),
                        _ => None,
                    };
                    let created = self.create(cwd, name, environment, opening).await?;
                    return attach(client, created, replay, encoding);
                };
                let _locked = self.sessions.lock(&id).await;
                let place = Some((cwd, environment));
                let session = self.open_locked(&id, place, opening).await?;
                attach(client, session, Replay::AfterAnswer, encoding)
            }
            Joining::Fork {
                source,
                up_to,
                cwd,
                opening,
            } => attach(
                client,
                self.fork(&source, up_to, cwd, opening).await?,
                replay,
                encoding,
            ),
            Joining::Existing { id, place, opening } => {
                // Until the client is attached the session must not leave memory.
                let _locked = self.sessions.lock(&id).await;
                attach(
                    client,
                    self.open_locked(&id, place, opening).await?,
                    replay,
                    encoding,
                )
            }
        }
    }

    fn take_next_session(&self) -> Option<NextSession> {
        let next = self.next_session.lock();
        next.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the session that `session/new` opens again, if it does.
    ///
    /// # Errors
    ///
    /// Resource not found, when no session has the name.
    async fn existing(
        &self,
        next: Option<&NextSession>,
        cwd: &str,
    ) -> HandlerResult<Option<SessionId>> {
        let mut query = ListQuery {
            limit: 1,
            ..ListQuery::default()
        };
        match next {
            Some(NextSession::Resume(name)) => query.name = Some(name.clone()),
            Some(NextSession::ResumeRecent) => query.cwd = Some(cwd.to_owned()),
            _ => return Ok(None),
        }
        let found = self.store.list(&query).await;
        let failed = |error| HandlerError::internal(format!("the store failed: {error}"));
        let found = found.map_err(failed)?.pop().map(|record| record.id);
        match (found, next) {
            (None, Some(NextSession::Resume(name))) => {
                let reason = format!("a session of the name {name:?}");
                Err(HandlerError::resource_not_found(reason))
            }
            (found, _) => Ok(found),
        }
    }

    /// Creates a session.
    pub(crate) async fn create(
        self: &Arc<Self>,
        cwd: String,
        name: Option<String>,
        environment: Environment,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        let id = crate::ids::session_id().map_err(HandlerError::internal)?;
        let mut record = SessionRecord::new(id, cwd);
        record.name = name;
        record
            .additional_directories
            .clone_from(&environment.additional_directories);
        let session = self.session_of(&record, environment);
        // Stored after it is open: a session that could not be opened must not be listed.
        let (state, settings) = self
            .open_handler(&session, OpeningKind::New, opening)
            .await?;
        match self.store.create(&record).await {
            Ok(lease) => session.log().set_lease(lease),
            Err(error) => {
                self.close_handler(&session, state).await;
                return Err(store_failed(&record.id, &error));
            }
        }
        self.enter_new(session, state, settings).await
    }

    /// Returns a session, and opens it if it is not in memory.
    pub(crate) async fn open(
        self: &Arc<Self>,
        id: &SessionId,
        place: Option<(String, Environment)>,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        let _locked = self.sessions.lock(id).await;
        self.open_locked(id, place, opening).await
    }

    async fn open_locked(
        self: &Arc<Self>,
        id: &SessionId,
        place: Option<(String, Environment)>,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        if let Some(session) = self.sessions.find(id) {
            if let Some((cwd, environment)) = place {
                same_directory(id, session.cwd(), &cwd)?;
                session.set_environment(environment);
            }
            return Ok(session);
        }
        // Checked before the lease is taken, so that a mistake does not disturb another process.
        let record = self.find(id).await?;
        let record = record.ok_or_else(|| not_found(id))?;
        if let Some((cwd, _)) = &place {
            same_directory(id, &record.cwd, cwd)?;
        }
        let acquired = self.store.acquire(id).await;
        let (record, lease) = acquired.map_err(|error| store_refused(id, &error))?;
        let environment = place.map(|(_, environment)| environment);
        let kept = || Environment {
            additional_directories: record.additional_directories.clone(),
            mcp_servers: Vec::new(),
        };
        let session = self.session_of(&record, environment.clone().unwrap_or_else(kept));
        session.log().set_lease(lease);
        let opened = async {
            super::repair::repair(&session, &record).await?;
            self.open_handler(&session, OpeningKind::Loaded, opening)
                .await
        };
        match opened.await {
            Ok((state, mut settings)) => {
                settings.restore(&record.settings);
                if let Some(environment) = environment {
                    session.set_environment(environment);
                }
                self.enter(session, state, settings).await
            }
            Err(error) => {
                self.release(&session).await;
                Err(error)
            }
        }
    }

    async fn fork(
        self: &Arc<Self>,
        source: &SessionId,
        up_to: Option<u64>,
        cwd: Option<String>,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        let _locked = self.sessions.lock(source).await;
        if let Some(session) = self.sessions.find(source) {
            let flushed = session.log().flush(session.log().epoch()).await;
            flushed.map_err(|error| store_failed(source, &error))?;
        }
        let origin = self.find(source).await?.ok_or_else(|| not_found(source))?;
        let id = crate::ids::session_id().map_err(HandlerError::internal)?;
        let last = up_to.map_or(origin.last_event, |up_to| up_to.min(origin.last_event));
        let mut record = SessionRecord::new(id, cwd.unwrap_or(origin.cwd));
        record.title = origin.title;
        record.settings = origin.settings;
        record.additional_directories = origin.additional_directories;
        record.last_event = last;
        record.running_turn = origin.running_turn.filter(|turn| *turn <= last);
        record.forked_from = Some((source.clone(), last));
        let forked = self.store.fork(source, up_to, &record).await;
        let lease = forked.map_err(|error| store_refused(source, &error))?;
        let environment = Environment {
            additional_directories: record.additional_directories.clone(),
            mcp_servers: Vec::new(),
        };
        let session = self.session_of(&record, environment);
        session.log().set_lease(lease);
        let kind = OpeningKind::Forked {
            from: source.clone(),
        };
        let opened = async {
            super::repair::repair(&session, &record).await?;
            self.open_handler(&session, kind, opening).await
        };
        match opened.await {
            Ok((state, mut settings)) => {
                settings.restore(&record.settings);
                self.enter_new(session, state, settings).await
            }
            Err(error) => {
                // A fork that could not be opened must not be listed.
                let _ = self.store.delete(session.id()).await;
                Err(error)
            }
        }
    }

    fn session_of(self: &Arc<Self>, record: &SessionRecord, environment: Environment) -> Session {
        let limits = self.limits.log.clone();
        let log = Log::new(
            record.id.clone(),
            self.store.clone(),
            limits,
            record.last_event,
        );
        Session::new(self.clone(), record, log, environment)
    }

    async fn open_handler(
        &self,
        session: &Session,
        kind: OpeningKind,
        opening: OpeningClient,
    ) -> HandlerResult<(HandlerState, Settings)> {
        let opening = Opening {
            session: session.clone(),
            kind,
            capabilities: opening.capabilities,
            client: opening.info,
            meta: opening.meta,
        };
        let limit = self.limits.open_timeout;
        let open = async {
            // Never closed, so this never fails.
            let _turn = self.opens.acquire().await;
            self.handler.open(&opening).await
        };
        tokio::time::timeout(limit, open).await.unwrap_or_else(|_| {
            let reason = format!("the handler did not open the session within {limit:?}");
            Err(HandlerError::internal(reason))
        })
    }

    async fn close_handler(&self, session: &Session, state: HandlerState) {
        let closing = self.handler.close(state, session);
        // A handler that hangs is dropped.
        let _ = tokio::time::timeout(self.limits.close_timeout, closing).await;
    }

    /// The session is open from here on.
    async fn enter(
        &self,
        session: Session,
        state: HandlerState,
        settings: Settings,
    ) -> HandlerResult<Session> {
        if !self.sessions.enter(&session, self.limits.sessions) {
            self.close_handler(&session, state).await;
            self.release(&session).await;
            let limit = self.limits.sessions;
            let reason = format!("{limit} sessions are open, which is the limit; close one first");
            return Err(HandlerError::internal(reason));
        }
        let mut locked = session.state();
        locked.settings = settings;
        locked.handler_state = Some(state);
        drop(locked);
        Ok(session)
    }

    /// Enters a session that this request has created. If it cannot be entered, it must not be
    /// listed.
    async fn enter_new(
        &self,
        session: Session,
        state: HandlerState,
        settings: Settings,
    ) -> HandlerResult<Session> {
        let id = session.id().clone();
        let entered = self.enter(session, state, settings).await;
        if entered.is_err() {
            let _ = self.store.delete(&id).await;
        }
        entered
    }

    async fn release(&self, session: &Session) {
        if let Some(lease) = session.log().lease() {
            // A lease that cannot be given back ends with the process.
            let _ = self.store.release(lease).await;
        }
    }

    /// Ends a client's part in a session; the last client closes it.
    pub(crate) async fn leave(&self, client: &Arc<Client>, id: &SessionId) -> HandlerResult<()> {
        let _locked = self.sessions.lock(id).await;
        let subscription = client.subscription(id);
        let Some(subscription) = subscription else {
            let known = self.find(id).await?.is_some();
            return if known { Ok(()) } else { Err(not_found(id)) };
        };
        let session = subscription.session().clone();
        let tokens = session.state().queue.tokens_of(client.id());
        tokens.iter().for_each(|token| token.cancel());
        if session.clients().len() > 1 {
            client.leave(&session);
            session.offer_again(client.id());
        } else {
            self.deactivate(&session).await;
        }
        Ok(())
    }

    /// Ends what runs in a session, and frees its memory. The id must be locked.
    async fn deactivate(&self, session: &Session) {
        session.stop().await;
        self.sessions.remove(session.id());
        // What it still appended is committed, or lost with an error that its turn has had.
        let _ = session.log().flush(session.log().epoch()).await;
        self.deliver(session).await;
        for attached in session.clients() {
            attached.client.leave(session);
        }
        let state = session.state().handler_state.take();
        if let Some(state) = state {
            self.close_handler(session, state).await;
        }
        self.release(session).await;
    }

    /// Waits until the clients have been sent the end of a session's work, but not for those that
    /// do not read.
    async fn deliver(&self, session: &Session) {
        let last = session.last_event();
        let delivered = async {
            for attached in session.clients() {
                // Events that cannot be read are lost for this client.
                let _ = attached.subscription.reached(last).await;
            }
        };
        let _ = tokio::time::timeout(DELIVERY_TIMEOUT, delivered).await;
    }

    pub(crate) async fn delete(&self, id: &SessionId) -> HandlerResult<()> {
        let _locked = self.sessions.lock(id).await;
        if let Some(session) = self.sessions.find(id) {
            self.deactivate(&session).await;
        }
        let deleted = self.store.delete(id).await;
        deleted.map_err(|error| store_refused(id, &error))?;
        Ok(())
    }

    /// Closes a session if it is open.
    pub(super) async fn unload(&self, id: &SessionId) {
        let _locked = self.sessions.lock(id).await;
        if let Some(session) = self.sessions.find(id) {
            self.deactivate(&session).await;
        }
    }

    /// Closes a session after the idle timeout, unless it is used meanwhile.
    pub(crate) fn unload_later(self: &Arc<Self>, session: &Session) {
        let timeout = self.limits.idle_timeout;
        if timeout.is_zero() || self.closed.is_cancelled() || !is_unused(session) {
            return;
        }
        let (core, of) = (self.clone(), session.clone());
        let last = session.last_event();
        let timer = tokio::spawn(async move {
            let session = of;
            tokio::select! {
                () = tokio::time::sleep(timeout) => {}
                () = core.closed.cancelled() => return,
            }
            // From here on it must not be aborted.
            session.state().idle_timer = None;
            let _locked = core.sessions.lock(session.id()).await;
            if is_unused(&session) && session.last_event() == last {
                core.deactivate(&session).await;
            }
        });
        let before = session.state().idle_timer.replace(timer.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// A client's connection has ended.
    pub(crate) fn disconnected(self: &Arc<Self>, client: &Arc<Client>, session: &Session) {
        session
            .state()
            .clients
            .retain(|old| old.client.id() != client.id());
        session.offer_again(client.id());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let policy = session
            .policies()
            .on_disconnect
            .unwrap_or(client.on_disconnect);
        let (core, session, client) = (self.clone(), session.clone(), client.id());
        runtime.spawn(async move {
            if let OnDisconnect::Cancel { after } = policy {
                tokio::select! {
                    () = tokio::time::sleep(after) => {}
                    () = core.closed.cancelled() => {}
                }
                if session.clients().is_empty() {
                    let tokens = session.state().queue.tokens_of(client);
                    tokens.iter().for_each(|token| token.cancel());
                }
            }
            core.unload_later(&session);
        });
    }

    pub(crate) async fn find(&self, id: &SessionId) -> HandlerResult<Option<SessionRecord>> {
        let found = self.store.find(id).await;
        found.map_err(|error| store_failed(id, &error))
    }

    /// Returns a page of sessions, and the cursor of the next one.
    pub(crate) async fn list(
        &self,
        cwd: Option<String>,
        after: Option<(String, SessionId)>,
    ) -> HandlerResult<(Vec<SessionRecord>, Option<String>)> {
        let limit = self.limits.list_page;
        let mut query = ListQuery::default();
        (query.cwd, query.after) = (cwd, after);
        // One more than a page shows whether there is a next one.
        query.limit = limit + 1;
        let found = self.store.list(&query).await;
        let failed = |error| HandlerError::internal(format!("the store failed: {error}"));
        let mut found = found.map_err(failed)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|record| check::cursor(&record.updated_at, &record.id));
        Ok((found, next))
    }

    /// Returns the number of the oldest event that a session still has.
    pub(crate) async fn oldest(&self, id: &SessionId) -> HandlerResult<u64> {
        let page = self.store.read(id, 0, 1).await;
        Ok(page.map_err(|error| store_failed(id, &error))?.oldest)
    }
}

/// Attaches a client to an open session, or sets its cursor back if it is attached.
fn attach(
    client: &Arc<Client>,
    session: Session,
    replay: Replay,
    encoding: impl FnOnce() -> Encoding,
) -> HandlerResult<Joined> {
    if let Some(subscription) = client.subscription(session.id()) {
        let (last, barrier) = subscription.restart(replay);
        return Ok(Joined {
            session,
            subscription,
            last,
            barrier,
        });
    }
    let subscription = Subscription::new(&session, client, encoding());
    let (last, barrier) = subscription.restart(replay);
    {
        let limit = session.core().limits.clients_per_session;
        let mut state = session.state();
        if state.clients.len() >= limit {
            let id = session.id();
            let reason = format!("session {id} has {limit} clients, which is the limit");
            return Err(HandlerError::internal(reason));
        }
        let (client, subscription) = (client.clone(), subscription.clone());
        state.clients.push(Attached {
            client,
            subscription,
        });
    }
    if !client.enter(&subscription) {
        client.leave(&session);
        return Err(HandlerError::cancelled());
    }
    subscription.follow();
    Ok(Joined {
        session,
        subscription,
        last,
        barrier,
    })
}

/// Returns whether no client and no turn uses an open session.
fn is_unused(session: &Session) -> bool {
    let state = session.state();
    state.clients.is_empty() && !state.queue.has_runner() && !state.queue.is_closed()
}

fn same_directory(id: &SessionId, expected: &str, cwd: &str) -> HandlerResult<()> {
    if expected == cwd {
        return Ok(());
    }
    let reason = format!("session {id} works in {expected:?}, not in {cwd:?}");
    Err(HandlerError::invalid_params("/cwd", reason))
}

fn not_found(id: &SessionId) -> HandlerError {
    HandlerError::resource_not_found(format!("session {id}"))
}

fn store_refused(id: &SessionId, error: &StoreError) -> HandlerError {
    match error.kind() {
        StoreErrorKind::NotFound => not_found(id),
        _ => store_failed(id, error),
    }
}
