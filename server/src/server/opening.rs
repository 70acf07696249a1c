//! Creating, opening and forking sessions.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use acp_sdk::v1::{ClientCapabilities, ErrorCode, Implementation, SessionId};
use acp_sdk::{HandlerError, HandlerResult, Meta};

use super::records::{not_found, store_refused, store_unavailable};
use super::tasks::shutting_down;
use super::{NextSession, ServerCore};
use crate::connection::store_failed;
use crate::handler::HandlerState;
use crate::log::Log;
use crate::log_repeated;
use crate::panic::catch_panic;
use crate::session::{Environment, Opening, OpeningKind};
use crate::store::{Lease, ListQuery, SessionRecord};
use crate::{Session, Settings};

/// What the handler learns about the client that opens a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpeningClient {
    pub(crate) capabilities: Arc<ClientCapabilities>,
    pub(crate) info: Option<Implementation>,
    pub(crate) meta: Option<Meta>,
}

/// A session that is being opened. Dropped before it is open, the prompts of its handler fail.
struct Unopened(Session);

impl Deref for Unopened {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        self.0.not_opened();
    }
}

impl ServerCore {
    pub(super) fn take_next_session(&self) -> Option<NextSession> {
        let next = self.next_session.lock();
        next.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the session that `session/new` opens again, if it does.
    ///
    /// # Errors
    ///
    /// Resource not found, when no session has the name.
    pub(super) async fn existing(
        &self,
        next: Option<&NextSession>,
        cwd: &str,
    ) -> HandlerResult<Option<SessionId>> {
        let mut query = ListQuery::default();
        match next {
            Some(NextSession::Resume(name)) => query.name = Some(name.clone()),
            Some(NextSession::ResumeRecent) => query.cwd = Some(cwd.to_owned()),
            _ => return Ok(None),
        }
        match (self.latest(query).await?, next) {
            (None, Some(NextSession::Resume(name))) => {
                let reason = format!("a session of the name {name:?}");
                Err(HandlerError::resource_not_found(reason))
            }
            (found, _) => Ok(found),
        }
    }

    /// Returns the session of the latest activity among those of a query.
    async fn latest(&self, mut query: ListQuery) -> HandlerResult<Option<SessionId>> {
        query.limit = 1;
        let found = self.store.list(&query).await;
        let found = found.map_err(|error| store_unavailable(&error))?.pop();
        Ok(found.map(|record| record.id))
    }

    /// Opens the session of a name, or creates it, without a client.
    pub(crate) async fn named(self: &Arc<Self>, name: &str, cwd: String) -> HandlerResult<Session> {
        let query = ListQuery {
            name: Some(name.to_owned()),
            ..ListQuery::default()
        };
        if let Some(id) = self.latest(query).await? {
            return self.open(&id).await;
        }
        let name = Some(name.to_owned());
        let created = self.finish(|core| async move {
            let id = new_id()?;
            let _locked = core.sessions.lock(&id).await;
            let (environment, opening) = Default::default();
            let created = core.create_locked(&id, cwd, name, environment, opening);
            let session = created.await?;
            core.unload_later(&session);
            Ok(session)
        });
        created.await
    }

    /// Creates a session without a client; one that has the id `once` already is opened instead.
    /// Returns whether it is new.
    pub(crate) async fn create(
        self: &Arc<Self>,
        once: Option<SessionId>,
        cwd: String,
    ) -> HandlerResult<(Session, bool)> {
        let created = self.finish(|core| async move {
            let id = once.clone().map_or_else(new_id, Ok)?;
            let locked = core.sessions.lock(&id).await;
            if once.is_some() {
                let found = core.store.find(&id).await;
                if found.map_err(|error| store_unavailable(&error))?.is_some() {
                    drop(locked);
                    return Ok((core.open(&id).await?, false));
                }
            }
            let (environment, opening) = Default::default();
            let created = core.create_locked(&id, cwd, None, environment, opening);
            let session = created.await?;
            core.unload_later(&session);
            Ok((session, true))
        });
        created.await
    }

    /// Creates a session, for who has locked the id.
    pub(super) async fn create_locked(
        self: &Arc<Self>,
        id: &SessionId,
        cwd: String,
        name: Option<String>,
        environment: Environment,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        if self.draining.load(Ordering::Acquire) {
            return Err(shutting_down());
        }
        let mut record = SessionRecord::new(id.clone(), cwd);
        record.name = name;
        record
            .additional_directories
            .clone_from(&environment.additional_directories);
        let session = self.session_of(&record, environment);
        // Stored after it is open: a session that could not be opened must not be listed.
        let (state, settings) = self
            .open_handler(&session, &record, OpeningKind::New, opening)
            .await?;
        record.data = session.data();
        match self.store.create(&record).await {
            Ok(lease) => session.log().set_lease(lease),
            Err(error) => {
                self.close_handler(&session, state).await;
                return Err(store_failed(&record.id, &error));
            }
        }
        let session = self.enter_new(session, state, settings).await?;
        match session.begin_with(&self.initial_settings).await {
            Ok(()) => Ok(session),
            Err(error) => {
                self.deactivate(&session).await;
                self.delete_unopened(id).await;
                // Nothing is wrong with what the client asked for.
                let reason = &error.as_response().message;
                let reason = format!(
                    "the settings with which the server begins sessions (--model, --mode, --option) \
                     do not fit the agent: {reason}"
                );
                log_repeated!(warn, "{reason}");
                Err(HandlerError::internal(reason))
            }
        }
    }

    /// Returns a session, and opens it without a client if it is not in memory.
    pub(crate) async fn open(self: &Arc<Self>, id: &SessionId) -> HandlerResult<Session> {
        let id = id.clone();
        let opened = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            let opened = core.open_locked(&id, None, OpeningClient::default());
            opened.await.inspect(|session| core.unload_later(session))
        });
        opened.await
    }

    /// Returns a session if it is open, for who may only read: opening takes a lease, and starts what
    /// the handler needs.
    ///
    /// # Errors
    ///
    /// Resource not found, with the reason.
    pub(crate) async fn opened(&self, id: &SessionId) -> HandlerResult<Session> {
        let open = self.sessions.find(id);
        if let Some(session) = open.filter(|session| session.log().ended().is_none()) {
            return Ok(session);
        }
        self.find(id).await?.ok_or_else(|| not_found(id))?;
        let reason = format!(
            "session {id} is not open, and the token is for reading only; \
             a client that may write must load it first"
        );
        Err(HandlerError::new(ErrorCode::RESOURCE_NOT_FOUND, reason))
    }

    /// Returns a session, and opens it if it is not in memory, for who has locked the id.
    pub(super) async fn open_locked(
        self: &Arc<Self>,
        id: &SessionId,
        place: Option<(String, Environment)>,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        if let Some(session) = self.sessions.find(id) {
            if session.log().ended().is_none() {
                if let Some((cwd, environment)) = place {
                    self.check_directory(id, session.cwd(), &cwd)?;
                    session.set_environment(environment);
                }
                return Ok(session);
            }
            // It is about to be closed.
            self.deactivate(&session).await;
        }
        // Checked before the lease is taken, so that a mistake does not disturb another process.
        let record = self.find(id).await?;
        let record = record.ok_or_else(|| not_found(id))?;
        if let Some((cwd, _)) = &place {
            self.check_directory(id, &record.cwd, cwd)?;
        }
        self.refuse_once_closed()?;
        let suspended = self.sessions.take_suspended(id);
        let (environment, opening) = match (place, &suspended) {
            (Some((_, environment)), _) => (Some(environment), opening),
            (None, Some(old)) => (Some(old.environment.clone()), old.opening()),
            (None, None) => (None, opening),
        };
        let opened = self.open_record(id, environment, opening).await;
        match (&opened, suspended) {
            (Ok(session), Some(suspended)) => suspended.restore(session),
            // It can be opened later.
            (Err(_), Some(suspended)) => self.sessions.suspend(id, suspended),
            (_, None) => {}
        }
        opened
    }

    async fn open_record(
        self: &Arc<Self>,
        id: &SessionId,
        environment: Option<Environment>,
        opening: OpeningClient,
    ) -> HandlerResult<Session> {
        let acquired = self.store.acquire(id).await;
        let (record, lease) = acquired.map_err(|error| store_refused(id, &error))?;
        let session = self.stored_session(&record, lease);
        if let Some(environment) = environment {
            session.set_environment(environment);
        }
        let opened = self.open_stored(&session, &record, OpeningKind::Loaded, opening);
        match opened.await {
            Ok((state, settings)) => self.enter(session, state, settings).await,
            Err(error) => {
                self.release(&session).await;
                Err(error)
            }
        }
    }

    /// Copies a session with its events, all or up to this one, without a client.
    pub(super) async fn fork_detached(
        self: &Arc<Self>,
        source: SessionId,
        up_to: Option<u64>,
    ) -> HandlerResult<Session> {
        let forked = self.finish(|core| async move {
            let id = new_id()?;
            let _locked = core.sessions.lock(&id).await;
            let opening = OpeningClient::default();
            let (session, _) = core.fork(&source, &id, up_to, None, opening).await?;
            core.unload_later(&session);
            Ok(session)
        });
        forked.await
    }

    /// Copies a session, for who has locked the id of the copy. Returns the last event that was copied.
    pub(super) async fn fork(
        self: &Arc<Self>,
        source: &SessionId,
        id: &SessionId,
        up_to: Option<u64>,
        cwd: Option<String>,
        opening: OpeningClient,
    ) -> HandlerResult<(Session, u64)> {
        let _locked = self.sessions.lock(source).await;
        if let Some(session) = self.sessions.find(source) {
            let flushed = session.log().flush(session.log().epoch()).await;
            flushed.map_err(|error| store_failed(source, &error))?;
        }
        let origin = self.find(source).await?.ok_or_else(|| not_found(source))?;
        let last = up_to.map_or(origin.last_event, |up_to| up_to.min(origin.last_event));
        let mut record = SessionRecord::new(id.clone(), cwd.unwrap_or(origin.cwd));
        record.title = origin.title;
        record.settings = origin.settings;
        record.data = origin.data;
        record.additional_directories = origin.additional_directories;
        record.last_event = last;
        record.running_turn = origin.running_turn.filter(|turn| *turn <= last);
        record.forked_from = Some((source.clone(), last));
        let is_complete = last == origin.last_event && origin.running_turn.is_none();
        self.refuse_once_closed()?;
        let forked = self.store.fork(source, up_to, &record).await;
        let lease = forked.map_err(|error| store_refused(source, &error))?;
        let session = self.stored_session(&record, lease);
        let kind = OpeningKind::Forked {
            from: source.clone(),
            is_complete,
        };
        let opened = self.open_stored(&session, &record, kind, opening).await;
        match opened {
            Ok((state, settings)) => Ok((self.enter_new(session, state, settings).await?, last)),
            Err(error) => {
                // A fork that could not be opened must not be listed.
                self.delete_unopened(session.id()).await;
                Err(error)
            }
        }
    }

    /// Checks the working directory of a request that opens a session. The session keeps its own.
    fn check_directory(&self, id: &SessionId, expected: &str, cwd: &str) -> HandlerResult<()> {
        if expected == cwd {
            return Ok(());
        }
        if self.requires_same_cwd {
            let reason = format!("session {id} works in {expected:?}, not in {cwd:?}");
            return Err(HandlerError::invalid_params("/cwd", reason));
        }
        tracing::debug!(session = %id, expected, cwd, "a client opens the session from another directory");
        Ok(())
    }

    fn session_of(self: &Arc<Self>, record: &SessionRecord, environment: Environment) -> Unopened {
        let limits = self.limits.log.clone();
        let log = Log::new(
            record.id.clone(),
            self.store.clone(),
            limits,
            self.log_memory.clone(),
            record.last_event,
        );
        Unopened(Session::new(self.clone(), record, log, environment))
    }

    async fn open_handler(
        &self,
        session: &Session,
        record: &SessionRecord,
        kind: OpeningKind,
        opening: OpeningClient,
    ) -> HandlerResult<(HandlerState, Settings)> {
        let opening = Opening {
            session: session.clone(),
            kind,
            capabilities: opening.capabilities,
            client: opening.info,
            meta: opening.meta,
            changed_options: record.settings.clone(),
        };
        let limit = self.limits.open_timeout;
        let open = async {
            // Never closed, so this never fails.
            let _turn = self.opens.acquire().await;
            self.handler.open(&opening).await
        };
        let opening = async {
            tokio::select! {
                biased;
                () = self.closed.cancelled() => Err(shutting_down()),
                opened = tokio::time::timeout(limit, open) => opened.unwrap_or_else(|_| {
                    let reason = format!("the handler did not open the session within {limit:?}");
                    log_repeated!(warn, session = %session.id(), "{reason}");
                    Err(HandlerError::internal(reason))
                }),
            }
        };
        let opened = catch_panic("the handler's open", Some(session.id()), opening);
        opened.await.unwrap_or_else(|panic| {
            let reason = format!("the handler panicked: {panic}");
            Err(HandlerError::internal(reason))
        })
    }

    /// Returns the session of a record that the store has, not open yet.
    fn stored_session(self: &Arc<Self>, record: &SessionRecord, lease: Lease) -> Unopened {
        let environment = Environment {
            additional_directories: record.additional_directories.clone(),
            ..Environment::default()
        };
        let session = self.session_of(record, environment);
        session.log().set_lease(lease);
        session
    }

    /// Has the handler open a session that has a past.
    async fn open_stored(
        &self,
        session: &Session,
        record: &SessionRecord,
        kind: OpeningKind,
        opening: OpeningClient,
    ) -> HandlerResult<(HandlerState, Settings)> {
        super::repair::repair(session, record).await?;
        let prompts = self.store.prompts(session.id()).await;
        session.restore_prompts(&prompts.map_err(|error| store_failed(session.id(), &error))?);
        let (state, mut settings) = self.open_handler(session, record, kind, opening).await?;
        settings.restore(&record.settings);
        Ok((state, settings))
    }

    /// The session is open from here on.
    async fn enter(
        &self,
        session: Unopened,
        state: HandlerState,
        settings: Settings,
    ) -> HandlerResult<Session> {
        let entered = loop {
            let entered = self.sessions.enter(&session, self.limits.sessions);
            let is_full = entered.is_err() && !self.closed.is_cancelled();
            if !is_full || !self.make_room().await {
                break entered;
            }
        };
        if let Err(error) = entered {
            self.close_handler(&session, state).await;
            self.release(&session).await;
            return Err(error);
        }
        // Those of another agent may have changed since, and are in the session already.
        if !settings.is_mirrored() {
            session.state().settings = settings;
        }
        session.set_used();
        session.opened(state);
        tracing::debug!(session = %session.id(), "opened a session");
        Ok(session.0.clone())
    }

    /// Enters a session that this request has created. If it cannot be entered, it must not be
    /// listed.
    async fn enter_new(
        &self,
        session: Unopened,
        state: HandlerState,
        settings: Settings,
    ) -> HandlerResult<Session> {
        let id = session.id().clone();
        let entered = self.enter(session, state, settings).await;
        if entered.is_err() {
            self.delete_unopened(&id).await;
        }
        entered
    }

    /// Deletes a session that its request could not open.
    async fn delete_unopened(&self, id: &SessionId) {
        if let Err(error) = self.store.delete(id).await {
            log_repeated!(
                warn, session = %id, %error,
                "a session that could not be opened stays in the store"
            );
        }
    }
}

/// Returns an id that no session has.
pub(super) fn new_id() -> HandlerResult<SessionId> {
    let id = crate::ids::session_id().map_err(HandlerError::internal)?;
    Ok(id.into())
}
