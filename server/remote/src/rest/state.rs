//! What all routes share.

use std::sync::{Arc, Weak};

use acp_sdk::v1::{ErrorCode, SessionId};
use acp_server::internal::server::DeletionObserver;
use acp_server::store::SessionRecord;
use acp_server::{Server, Session};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use jiff::Timestamp;

use super::failure::Failure;
use super::histories::Histories;
use super::long_reads::LongReads;
use crate::access::{Share, Shares};
use crate::agents::Agents;
use crate::caller::Caller;
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

    pub(super) fn server(&self) -> &Server {
        self.0.agents.default_agent().server()
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

    /// Returns what the store knows of a session.
    ///
    /// # Errors
    ///
    /// 404, or 500 when the store fails.
    pub(super) async fn record(&self, id: &SessionId) -> Result<SessionRecord, Failure> {
        let found = self.server().store().find(id).await;
        let found = found.map_err(|error| Failure::store("session_read_failed", &error))?;
        found.ok_or_else(Failure::session_not_found)
    }

    /// Returns a session if it is in memory.
    pub(super) fn in_memory(&self, id: &SessionId) -> Option<Session> {
        self.server().open_session(id)
    }

    /// Returns a session for a caller that [`Server::session_for`] lets open it.
    ///
    /// # Errors
    ///
    /// 404; 409 for a reader, when it is not open; or 500 when the agent or the store fails.
    pub(super) async fn open(&self, caller: &Caller, id: &SessionId) -> Result<Session, Failure> {
        let opened = self.server().session_for(&caller.access, id).await;
        opened.map_err(|error| match error.code() {
            // The callers have found its record.
            ErrorCode::RESOURCE_NOT_FOUND if !caller.access.may_write() => {
                Failure::session_not_open()
            }
            _ => Failure::agent("session_open_failed", &error),
        })
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

/// Returns a time in seconds since 1970, as Otter's clients expect it.
pub(super) fn seconds(iso8601: &str) -> f64 {
    let time = iso8601.parse::<Timestamp>();
    time.map_or(0.0, |time| time.as_duration().as_secs_f64())
}
