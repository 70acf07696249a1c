//! Otter's methods in terms of sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_dialects::otter_acp::*;
use acp_sdk::v1::{SessionId, StopReason};
use acp_sdk::{HandlerError, HandlerResult};
use acp_server::store::SessionRecord;
use acp_server::{InitialSettings, Phase, Server, Session};

use super::encode::{Updates, question, reply};
use super::failure::{failed, invalid, not_initialized, refused};
use crate::feed::{Feed, Resumed};
use crate::feeds::Feeds;
use crate::{message, permission};

/// The version of clients of the text's first form.
const FIRST_VERSION: &str = "0.1";

/// The version with `session/resume`.
const VERSION: i64 = 2;

/// Updates of a session that are replayed.
const HISTORY: u64 = 1_024;

/// Sessions in a list.
const LISTED: usize = 1_000;

/// The agent's side of one connection with a client of Otter's ACP server: hand it to
/// [`ConnectionBuilder::agent`](acp_sdk::ConnectionBuilder::agent). It serves the sessions of a
/// [`Server`].
pub struct OtterAcp {
    feeds: Feeds,
    is_initialized: AtomicBool,
}

impl OtterAcp {
    /// Creates the agent for one connection.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self::with_history(server, HISTORY)
    }

    /// The same with another number of updates that `session/resume` replays (default: 1,024).
    #[must_use]
    pub fn with_history(server: Server, history: u64) -> Self {
        Self {
            feeds: Feeds::new(server, history),
            is_initialized: AtomicBool::new(false),
        }
    }

    /// Sets the working directory of sessions whose client names none, and from which relative ones start
    /// (that of the process).
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.feeds.set_cwd(cwd.into());
        self
    }

    fn server(&self) -> &Server {
        self.feeds.server()
    }

    /// # Errors
    ///
    /// -32002 before `initialize`.
    fn initialized(&self) -> HandlerResult<()> {
        match self.is_initialized.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(not_initialized()),
        }
    }

    async fn open(&self, ctx: &AgentContext, id: &SessionId) -> HandlerResult<Arc<Feed>> {
        self.initialized()?;
        let encoder = Updates(ctx.client().clone());
        self.feeds.open(id, encoder).await.map_err(failed)
    }

    /// Returns a session, open or not.
    async fn session(&self, id: &SessionId) -> HandlerResult<Session> {
        self.initialized()?;
        self.server().session(id).await.map_err(failed)
    }

    async fn replay(
        &self,
        ctx: &AgentContext,
        id: &SessionId,
        since: u64,
    ) -> HandlerResult<(Arc<Feed>, Resumed)> {
        let feed = self.open(ctx, id).await?;
        match feed.replay(since).await {
            Ok(resumed) => Ok((feed, resumed)),
            Err(reason) => Err(failed(HandlerError::internal(reason))),
        }
    }

    /// Answers a question; `false` if it is not open.
    async fn answer(&self, id: &str, said: &PermissionReply) -> HandlerResult<bool> {
        self.initialized()?;
        let Some((session, question)) = question(id) else {
            return Ok(false);
        };
        let Some(reply) = reply(said) else {
            return Err(invalid(format!(
                "unknown reply to permission request {id:?}"
            )));
        };
        let Some(session) = self.server().open_session(&session) else {
            return Ok(false);
        };
        let pending = session.pending_permissions().into_iter();
        let mut pending = pending.filter(|pending| pending.question == question);
        let Some(pending) = pending.next() else {
            return Ok(false);
        };
        let options = &pending.request.options;
        match permission::answer(&session, question, reply, options, "otter-acp") {
            Ok(true) => Ok(true),
            Ok(false) => {
                let reason = format!("permission request {id:?} does not offer this reply");
                Err(invalid(reason))
            }
            Err(acp_server::Error::NotPending(..)) => Ok(false),
            Err(error) => Err(refused(error)),
        }
    }

    fn state(&self, session: Option<&Session>) -> SessionState {
        match session.map(Session::phase) {
            Some(Phase::Running) => SessionState::Running,
            Some(Phase::Cancelling) => SessionState::Cancelled,
            Some(Phase::Idle | Phase::Closed) | None => SessionState::Idle,
        }
    }

    fn entry(&self, record: SessionRecord) -> SessionEntry {
        let state = self.state(self.server().open_session(&record.id).as_ref());
        let mut entry = SessionEntry::new(
            record.id,
            record.cwd,
            state,
            record.created_at,
            record.updated_at,
        );
        entry.title = record.title;
        entry
    }
}

impl Agent for OtterAcp {
    async fn initialize(
        &self,
        _: &AgentContext,
        req: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let version = match &req.protocol_version {
            Some(ProtocolVersion::String(version)) if version == FIRST_VERSION => {
                FIRST_VERSION.to_owned().into()
            }
            _ => ProtocolVersion::Integer(VERSION),
        };
        let agent = &self.server().info().implementation;
        let mut response = InitializeResponse::new(
            version,
            ProgramInfo::new("otter-acp", env!("CARGO_PKG_VERSION")),
            ServerCapabilities::new(true, true, true, false, false),
            ProgramInfo::new(agent.name.as_str(), agent.version.as_str()),
            AgentCapabilities::new(
                PromptCapabilities::new(true),
                SessionCapabilities::new(true, true),
                true,
                true,
            ),
        );
        response.client_protocol_version = req.protocol_version;
        self.is_initialized.store(true, Ordering::Release);
        Ok(response)
    }

    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        self.initialized()?;
        let cwd = self.feeds.working_directory(req.cwd.as_deref())?;
        let id = new_id()?;
        let created = self.server().create_session_once(id, cwd).await;
        let (session, _) = created.map_err(failed)?;
        let opened = OpenedSession::new(session.id().clone(), session.cwd());
        let encoder = Updates(ctx.client().clone());
        self.feeds.created(session, encoder, ctx.answered());
        Ok(NewSessionResponse(opened))
    }

    async fn load_session(
        &self,
        ctx: &AgentContext,
        req: LoadSessionRequest,
    ) -> HandlerResult<LoadSessionResponse> {
        let (feed, resumed) = self.replay(ctx, &req.session_id, u64::MAX).await?;
        let session = feed.session();
        Ok(LoadSessionResponse::new(
            req.session_id,
            session.cwd(),
            self.state(Some(session)),
            resumed.last,
        ))
    }

    async fn fork_session(
        &self,
        ctx: &AgentContext,
        req: ForkSessionRequest,
    ) -> HandlerResult<ForkSessionResponse> {
        self.initialized()?;
        let forked = self.server().fork_session(&req.session_id).await;
        let session = forked.map_err(failed)?;
        let opened = OpenedSession::new(session.id().clone(), session.cwd());
        self.feeds.feed(session, Updates(ctx.client().clone()));
        Ok(ForkSessionResponse(opened))
    }

    async fn list_sessions(
        &self,
        _: &AgentContext,
        _: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        self.initialized()?;
        let (mut stored, mut sessions) = (self.server().stored_sessions(), Vec::new());
        while sessions.len() < LISTED
            && let Some(record) = stored.next().await.map_err(refused)?
        {
            sessions.push(self.entry(record));
        }
        Ok(ListSessionsResponse::new(sessions))
    }

    async fn message(
        &self,
        ctx: &AgentContext,
        req: MessageRequest,
    ) -> HandlerResult<MessageResponse> {
        let feed = self.open(ctx, &req.session_id).await?;
        let ended = message::run(&feed, ctx, vec![req.message.into()]).await;
        let ended = ended.map_err(failed)?;
        let stop = ended.stop.as_str();
        let mut response = MessageResponse::new(req.session_id, stop, ended.output);
        response.cancelled = (ended.stop == StopReason::Cancelled).then_some(true);
        Ok(response)
    }

    async fn cancel(&self, _: &AgentContext, req: CancelRequest) -> HandlerResult<CancelResponse> {
        self.session(&req.session_id).await?.cancel_turn();
        Ok(CancelResponse::new(req.session_id, true))
    }

    async fn set_mode(
        &self,
        _: &AgentContext,
        req: SetModeRequest,
    ) -> HandlerResult<SetModeResponse> {
        let mut change = InitialSettings::default();
        change.mode = Some(req.mode.clone());
        let session = self.session(&req.session_id).await?;
        session.begin_with(&change).await.map_err(failed)?;
        Ok(SetModeResponse::new(req.session_id, req.mode))
    }

    async fn set_model(
        &self,
        _: &AgentContext,
        req: SetModelRequest,
    ) -> HandlerResult<SetModelResponse> {
        let mut change = InitialSettings::default();
        change.model = Some(req.model.clone());
        let session = self.session(&req.session_id).await?;
        session.begin_with(&change).await.map_err(failed)?;
        Ok(SetModelResponse::new(req.session_id, req.model))
    }

    async fn respond_permission(
        &self,
        _: &AgentContext,
        req: RespondPermissionRequest,
    ) -> HandlerResult<RespondPermissionResponse> {
        let applied = self.answer(&req.request_id, &req.reply).await?;
        Ok(RespondPermissionResponse::new(req.request_id, applied))
    }

    async fn approve_tool(
        &self,
        _: &AgentContext,
        req: ApproveToolRequest,
    ) -> HandlerResult<ApproveToolResponse> {
        let applied = self.answer(&req.permission_id, &req.decision).await?;
        Ok(ApproveToolResponse::new(
            req.session_id,
            req.permission_id,
            applied,
        ))
    }

    async fn resume_session(
        &self,
        ctx: &AgentContext,
        req: ResumeSessionRequest,
    ) -> HandlerResult<ResumeSessionResponse> {
        // A negative number counts as 0.
        let since = req.since_event_id.unwrap_or(0).try_into().unwrap_or(0);
        let (_, resumed) = self.replay(ctx, &req.session_id, since).await?;
        Ok(ResumeSessionResponse::new(
            req.session_id,
            resumed.replayed,
            resumed.last,
            resumed.truncated,
        ))
    }
}

agent!(OtterAcp);

/// Returns an id as Otter's sessions have it.
fn new_id() -> HandlerResult<SessionId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| failed(HandlerError::internal(error)))?;
    Ok(format!("otter-{:032x}", u128::from_le_bytes(bytes)).into())
}
