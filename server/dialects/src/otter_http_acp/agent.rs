//! The methods of Otter's HTTP server in terms of sessions.

use std::collections::VecDeque;
use std::path::PathBuf;

use acp_dialects::otter_http_acp::*;
use acp_sdk::v1::StopReason;
use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use acp_server::store::{Pages, SessionRecord, StoreError};
use acp_server::{Phase, Server, Session};

use super::encode::{Notifications, Source, Update, encode};
use crate::feeds::Feeds;
use crate::fold::Fold;
use crate::message;

/// The version that clients of ACP read.
const VERSION: i64 = 1;

/// Sessions in a list without a limit.
const LISTED: u64 = 20;

/// The most sessions in a list.
const MOST_LISTED: u64 = 1_000;

/// The most events of `session/get`.
const EVENTS: usize = 1_024;

/// The most bytes of their metadata.
const EVENT_BYTES: usize = 4 << 20;

/// The agent's side of one connection with a client of the JSON-RPC methods of Otter's HTTP server: hand it
/// to [`ConnectionBuilder::agent`](acp_sdk::ConnectionBuilder::agent). It serves the sessions of a
/// [`Server`].
///
/// The client cannot be asked for permissions. Those that the server's rules do not decide are rejected.
pub struct OtterHttpAcp(Feeds);

impl OtterHttpAcp {
    /// Creates the agent for one connection.
    #[must_use]
    pub fn new(server: Server) -> Self {
        // `session/get` reads the past, which is never sent again.
        Self(Feeds::new(server, 0))
    }

    /// Sets the working directory of sessions whose client names none, and from which relative ones start
    /// (that of the process).
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.0.set_cwd(cwd.into());
        self
    }

    fn summary(&self, record: SessionRecord) -> SessionSummary {
        let session = self.0.server().open_session(&record.id);
        let status = match session.as_ref().map(Session::phase) {
            Some(Phase::Running) => SessionStatus::Running,
            Some(Phase::Cancelling) => SessionStatus::Cancelled,
            Some(Phase::Idle | Phase::Closed) | None => SessionStatus::Idle,
        };
        let mut summary = SessionSummary::new(
            record.id,
            record.cwd,
            status,
            record.created_at,
            record.updated_at,
        );
        summary.title = record.title;
        summary
    }
}

/// Returns the payloads of a session's notifications so far, and whether earlier ones are left out. It reads
/// the store, because only a turn needs the session open.
///
/// # Errors
///
/// That of the store.
async fn latest(
    server: &Server,
    record: &SessionRecord,
) -> Result<(Vec<EventPayload>, bool), StoreError> {
    let (mut fold, mut is_truncated) = (Fold::default(), record.is_truncated());
    let (mut events, mut bytes) = (VecDeque::new(), 0);
    let size = |payload: &EventPayload| payload.metadata.get().len();
    let store = server.store().clone();
    let mut pages = Pages::new(store, &record.id, 0, record.last_event);
    while let Some(page) = pages.next().await? {
        for event in page.events().map(|event| event.parse()) {
            let source = Source::of(&event);
            for step in fold.event(event) {
                if let Some(Update::Sent(_, payload)) = encode(&record.id, &source, step) {
                    bytes += size(&payload);
                    events.push_back(payload);
                }
            }
            while (events.len() > EVENTS || bytes > EVENT_BYTES)
                && let Some(removed) = events.pop_front()
            {
                bytes -= size(&removed);
                is_truncated = true;
            }
        }
    }
    Ok((events.into(), is_truncated))
}

impl Agent for OtterHttpAcp {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let agent = &self.0.server().info().implementation;
        Ok(InitializeResponse::new(
            VERSION,
            ProgramInfo::new(agent.name.as_str(), agent.version.as_str()),
            AgentCapabilities::new(false),
        ))
    }

    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        // What would be ignored must not seem to hold: a list of tools is a restriction.
        let unsupported = [
            ("prompt", req.prompt.is_some()),
            ("model", req.model.is_some()),
            ("max_steps", req.max_steps.is_some()),
            ("allowed_tools", req.allowed_tools.is_some()),
        ];
        if let Some((field, _)) = unsupported.iter().find(|(_, is_asked)| *is_asked) {
            let reason = format!("session/new does not support `{field}`; leave it out");
            return Err(HandlerError::new(ErrorCode::INVALID_PARAMS, reason));
        }
        let cwd = self.0.working_directory(req.cwd.as_deref())?;
        let session = self.0.server().create_session(cwd).await?;
        let id = session.id().clone();
        let response = NewSessionResponse::new(id, session.cwd(), SessionStatus::Idle);
        let encoder = Notifications(ctx.client().clone());
        self.0.created(session, encoder, ctx.answered());
        Ok(response)
    }

    async fn turn(&self, ctx: &AgentContext, req: TurnRequest) -> HandlerResult<TurnResponse> {
        let encoder = Notifications(ctx.client().clone());
        let feed = self.0.open(&req.session_id, encoder).await?;
        let ended = message::run(&feed, ctx, vec![req.prompt.into()]).await?;
        let status = match ended.stop == StopReason::Cancelled {
            true => "cancelled",
            false => "completed",
        };
        Ok(TurnResponse::new(
            req.session_id,
            status,
            ended.stop == StopReason::EndTurn,
            ended.stop.as_str(),
            ended.output,
        ))
    }

    async fn cancel(&self, _: &AgentContext, req: CancelRequest) -> HandlerResult<CancelResponse> {
        let session = self.0.server().session(&req.session_id).await?;
        session.cancel_turn();
        Ok(CancelResponse::new(req.session_id, true))
    }

    async fn list_sessions(
        &self,
        _: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        let (mut stored, mut sessions) = (self.0.server().stored_sessions(), Vec::new());
        for _ in 0..req.limit.unwrap_or(LISTED).min(MOST_LISTED) {
            match stored.next().await? {
                Some(record) => sessions.push(self.summary(record)),
                None => break,
            }
        }
        Ok(ListSessionsResponse::new(sessions))
    }

    async fn get_session(
        &self,
        _: &AgentContext,
        req: GetSessionRequest,
    ) -> HandlerResult<GetSessionResponse> {
        let server = self.0.server();
        let Some(record) = server.store().find(&req.session_id).await? else {
            let session = format!("session {}", req.session_id);
            return Err(HandlerError::resource_not_found(session));
        };
        let (events, is_truncated) = latest(server, &record).await?;
        Ok(GetSessionResponse::new(
            req.session_id,
            self.summary(record),
            events,
            is_truncated,
        ))
    }
}

agent!(OtterHttpAcp);
