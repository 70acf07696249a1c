//! What all routes share.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use acp_sdk::v1::{ErrorCode, SessionId};
use acp_server::Session;
use acp_server::internal::server::DeletionObserver;
use acp_server::store::SessionRecord;
use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::response::Response;

use super::failure::Failure;
use super::histories::Histories;
use super::long_reads::LongReads;
use crate::access::{Share, Shares};
use crate::agents::{Agents, ServedAgent};
use crate::caller::Caller;
use crate::nodes::NodeCaller;
use crate::{EndpointSettings, Tokens};

/// The state of the routes. Clones are handles to the same state.
#[derive(Clone)]
pub(super) struct Rest(Arc<RestInner>);

struct RestInner {
    agents: Agents,
    settings: EndpointSettings,
    tokens: Tokens,
    /// Held by streams.
    streams: Arc<Shares>,
    histories: Histories,
    long_reads: LongReads,
}

impl DeletionObserver for RestInner {
    fn session_deleted(&self, id: &SessionId) {
        self.tokens.revoke(id);
        self.histories.forget(id);
    }
}

impl Rest {
    pub(super) fn new(agents: Agents, settings: EndpointSettings, tokens: Tokens) -> Self {
        let inner = Arc::new(RestInner {
            agents,
            streams: Shares::new(settings.event_streams),
            long_reads: LongReads::new(settings.long_reads),
            settings,
            tokens,
            histories: Histories::default(),
        });
        let observer: Weak<RestInner> = Arc::downgrade(&inner);
        for agent in inner.agents.iter() {
            agent.server().observe_deletions(observer.clone());
        }
        Self(inner)
    }

    pub(super) fn agents(&self) -> &Agents {
        &self.0.agents
    }

    pub(super) fn settings(&self) -> &EndpointSettings {
        &self.0.settings
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    pub(super) fn long_reads(&self) -> &LongReads {
        &self.0.long_reads
    }

    pub(super) fn histories(&self) -> &Histories {
        &self.0.histories
    }

    /// Takes the place of a further stream, if there is one for the caller.
    pub(super) fn stream_place(&self, caller: &Caller) -> Option<Share> {
        self.0.streams.take(caller.holder, 1)
    }

    /// Returns the agent with a name; without one, the default.
    ///
    /// # Errors
    ///
    /// 400 with the names that exist.
    pub(super) fn agent(&self, name: Option<&str>) -> Result<&Arc<ServedAgent>, Failure> {
        self.agents()
            .named(name)
            .map_err(|unknown| Failure::bad_request("agent_not_found").message(unknown.to_string()))
    }

    /// Returns the agent that a request names, or all that it may read.
    ///
    /// # Errors
    ///
    /// 400 for an unknown name; 403 where the agent requires a login.
    pub(super) fn chosen(
        &self,
        caller: &Caller,
        name: Option<&str>,
    ) -> Result<Vec<Arc<ServedAgent>>, Failure> {
        let agents = match name {
            Some(_) => vec![self.agent(name)?],
            None => self.agents().iter().collect(),
        };
        let permitted = agents
            .into_iter()
            .filter(|agent| !agent.requires_login(&caller.access));
        let permitted: Vec<_> = permitted.cloned().collect();
        match permitted.is_empty() {
            true => Err(Failure::login_required()),
            false => Ok(permitted),
        }
    }

    /// Checks that no login is required for a session, or for one agent at least.
    ///
    /// # Errors
    ///
    /// 403.
    pub(super) async fn check_login(
        &self,
        caller: &Caller,
        session: Option<&SessionId>,
    ) -> Result<(), Failure> {
        let requires = |agent: &Arc<ServedAgent>| agent.requires_login(&caller.access);
        if !self.agents().iter().any(requires) {
            return Ok(());
        }
        let is_refused = match session {
            // One that does not exist is refused by its route.
            Some(id) => self.agent_of(id).await.is_ok_and(|agent| requires(&agent)),
            None => self.agents().iter().all(requires),
        };
        match is_refused {
            true => Err(Failure::login_required()),
            false => Ok(()),
        }
    }

    /// Returns what the store of its agent knows of a session.
    ///
    /// # Errors
    ///
    /// 404, or 500 when a store fails and no other has the session.
    pub(super) async fn record(&self, id: &SessionId) -> Result<StoredSession, Failure> {
        let is_open = |agent: &&Arc<ServedAgent>| agent.server().open_session(id).is_some();
        let open = self.agents().iter().find(is_open);
        let others = self.agents().iter().filter(|agent| !is_open(agent));
        let mut failure = None;
        for agent in open.into_iter().chain(others) {
            match agent.server().store().find(id).await {
                Ok(Some(record)) => {
                    let agent = agent.clone();
                    return Ok(StoredSession { record, agent });
                }
                Ok(None) => {}
                Err(error) => failure = Some(Failure::store("session_read_failed", &error)),
            }
        }
        Err(failure.unwrap_or_else(Failure::session_not_found))
    }

    /// Returns the agent of a session. The only one has every session.
    ///
    /// # Errors
    ///
    /// As [`record`](Self::record).
    pub(super) async fn agent_of(&self, id: &SessionId) -> Result<Arc<ServedAgent>, Failure> {
        let agents = self.agents();
        let is_open = |agent: &&Arc<ServedAgent>| agent.server().open_session(id).is_some();
        match agents.iter().find(is_open) {
            Some(agent) => Ok(agent.clone()),
            None if agents.are_several() => Ok(self.record(id).await?.agent),
            None => Ok(agents.default_agent().clone()),
        }
    }

    /// Passes a request on to the node that has its session; returns it if that is this one, or none.
    pub(super) async fn forward(
        &self,
        session: SessionId,
        caller: Caller,
        request: Request,
    ) -> Result<Response, Request> {
        let Some(nodes) = self.settings().nodes_for(&caller) else {
            return Err(request);
        };
        // A route answers for a session that nobody knows.
        let Ok(agent) = self.agent_of(&session).await else {
            return Err(request);
        };
        let caller = NodeCaller::new(caller, "rest");
        let server = agent.server().clone();
        nodes.forward(server, session, request, caller).await
    }

    /// Returns a session if it is in memory.
    pub(super) fn in_memory(&self, id: &SessionId) -> Option<Session> {
        let mut agents = self.agents().iter();
        agents.find_map(|agent| agent.server().open_session(id))
    }

    /// Returns a session for a caller that [`session_for`](acp_server::Server::session_for) lets open it.
    ///
    /// # Errors
    ///
    /// 404; 409 for a reader, when it is not open; or 500 when the agent or the store fails.
    pub(super) async fn open(&self, caller: &Caller, id: &SessionId) -> Result<Session, Failure> {
        let agent = self.agent_of(id).await?;
        if agent.requires_login(&caller.access) {
            return Err(Failure::login_required());
        }
        let opened = agent.server().session_for(&caller.access, id).await;
        opened.map_err(|error| match error.code() {
            // The callers have found its record.
            ErrorCode::RESOURCE_NOT_FOUND if !caller.access.may_write() => {
                Failure::session_not_open()
            }
            _ => Failure::agent("session_open_failed", &error),
        })
    }
}

/// A session in the store of its agent.
#[derive(Clone)]
pub(super) struct StoredSession {
    pub(super) record: SessionRecord,
    pub(super) agent: Arc<ServedAgent>,
}

impl Deref for StoredSession {
    type Target = SessionRecord;

    fn deref(&self) -> &SessionRecord {
        &self.record
    }
}

/// The session that the path names.
pub(super) struct Id(pub(super) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        // A path that is no text names no session.
        let Ok(Path(id)) = Path::<String>::from_request_parts(parts, state).await else {
            return Err(Failure::session_not_found());
        };
        Ok(Self(SessionId::from(id)))
    }
}
