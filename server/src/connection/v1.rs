//! The agent's side of a connection of protocol version 1, in terms of sessions.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};

use super::{Access, Barrier, Client, Replay, Subscription, check, extension};
use crate::limits::OnDisconnect;
use crate::server::{Joined, Joining, OpeningClient, ServerCore, Unanswered};
use crate::session::{Environment, Prompt, Prompter, Refusal, Ticket, TurnResult};
use crate::store::SessionRecord;
use crate::{Capability, Login, Server, Session};

/// Time for a handler to end its turn after the connection's input has ended.
const CLOSING_DEADLINE: Duration = Duration::from_secs(1);

/// One client of a [`Server`](crate::Server): hand it to
/// [`ConnectionBuilder::agent`](acp_sdk::ConnectionBuilder::agent) or
/// [`serve`](acp_sdk::serve). The client is detached when the connection ends.
#[derive(Debug)]
pub struct ServerConnection {
    pub(super) client: Arc<Client>,
    end: Arc<End>,
}

/// Detaches the client with the last agent of its connection, of whichever version.
#[derive(Debug)]
struct End {
    client: Arc<Client>,
    /// Sessions live as long as a connection or the server does.
    _server: Server,
}

impl Drop for End {
    fn drop(&mut self) {
        self.client.gone();
    }
}

impl ServerConnection {
    pub(crate) fn new(client: Arc<Client>, server: Server) -> Self {
        let end = End {
            client: client.clone(),
            _server: server,
        };
        Self {
            client,
            end: Arc::new(end),
        }
    }

    /// Returns another agent of the same connection.
    pub(super) fn share(&self) -> Self {
        Self {
            client: self.client.clone(),
            end: self.end.clone(),
        }
    }

    pub(super) fn core(&self) -> &Arc<ServerCore> {
        self.client.core()
    }

    /// Returns a session that this client is attached to.
    ///
    /// # Errors
    ///
    /// Resource not found, with the reason.
    pub(super) async fn attached(
        &self,
        id: &SessionId,
    ) -> HandlerResult<(Session, Arc<Subscription>)> {
        if let Some(subscription) = self.client.subscription(id) {
            let session = subscription.session().clone();
            if !session.state().queue.is_closed() {
                return Ok((session, subscription));
            }
        }
        // Boxed, because it is rare, and every prompt has room for it otherwise.
        Box::pin(self.attached_again(id)).await
    }

    /// Opens a session that has left memory although the client is attached.
    async fn attached_again(&self, id: &SessionId) -> HandlerResult<(Session, Arc<Subscription>)> {
        if self.client.is_suspended(id) && self.client.access().may_write() {
            self.core().open(id).await?;
            if let Some(subscription) = self.client.subscription(id) {
                return Ok((subscription.session().clone(), subscription));
            }
        }
        Err(self.not_attached(id).await)
    }

    async fn not_attached(&self, id: &SessionId) -> HandlerError {
        match self.core().find(id).await {
            Ok(Some(_)) => closed(id),
            Ok(None) => HandlerError::resource_not_found(format!("session {id}")),
            Err(error) => error,
        }
    }

    /// Checks the directories of a request, and returns what it says of its session.
    fn environment(
        &self,
        (method, session): (&str, Option<&SessionId>),
        cwd: &str,
        additional_directories: Vec<String>,
        mcp_servers: Vec<McpServer>,
    ) -> HandlerResult<Environment> {
        self.client.admit(method, session.map(SessionId::as_str))?;
        check::directories(cwd, &additional_directories)?;
        Ok(Environment {
            additional_directories,
            mcp_servers,
            #[cfg(feature = "unstable")]
            client: Arc::downgrade(&self.client),
        })
    }

    pub(super) fn opening(&self, meta: Option<Meta>) -> OpeningClient {
        OpeningClient {
            meta,
            ..self.client.opening()
        }
    }

    /// Opens a session if need be, attaches the client, and replays.
    pub(super) async fn join(
        &self,
        ctx: &AgentContext,
        joining: Joining,
        replay: Replay,
    ) -> HandlerResult<Session> {
        let Joined {
            session,
            subscription,
            barrier,
            attachment,
        } = self.core().join(&self.client, joining, replay).await?;
        let answers_last = self.client.encoding().answers_last();
        if let Some(gate) = self.client.gate().filter(|_| answers_last) {
            gate.precedes_answer(&subscription);
        }
        // In version 1 a session that nobody reads yet is answered first and replayed later.
        let replayed = async {
            match subscription.is_held() && !answers_last {
                true => Ok(()),
                false => barrier.reached().await,
            }
        };
        let replayed = tokio::select! {
            biased;
            reached = replayed => reached.map_err(|error| store_failed(session.id(), &error)),
            () = ctx.request_cancelled() => Err(HandlerError::cancelled()),
        };
        if let Err(error) = replayed {
            let _held = subscription.skip_replay();
            attachment.undo().await;
            return Err(error);
        }
        if subscription.has_ended() {
            // Closed meanwhile: the replay may be incomplete, and nothing follows it.
            return Err(closed(session.id()));
        }
        let unanswered = attachment.keep();
        let replayed = barrier.number().min(subscription.replayed_until());
        self.after_answer(ctx, &session, replayed, (unanswered, barrier));
        Ok(session)
    }

    /// Attaches the client to a session that there is, opening it if need be.
    async fn join_existing(
        &self,
        ctx: &AgentContext,
        id: SessionId,
        place: (String, Environment),
        meta: Option<Meta>,
        replay: Replay,
    ) -> HandlerResult<Session> {
        let joining = Joining::Existing {
            id,
            place: Some(place),
            opening: self.opening(meta),
        };
        self.join(ctx, joining, replay).await
    }

    /// Queues a prompt of this client.
    ///
    /// Nothing is awaited before, if the client is attached: prompts are queued in the order of
    /// their arrival, and a cancellation that follows one finds it.
    pub(super) async fn submit(
        &self,
        req: PromptRequest,
        submit: fn(&Session, Prompt) -> Result<Ticket, Refusal>,
    ) -> HandlerResult<(Session, Arc<Subscription>, Ticket)> {
        let (session, subscription) = self.attached(&req.session_id).await?;
        let key = check::idempotency_key(req.meta.as_ref())?;
        let in_order = session.in_order(key.is_some()).await?;
        let ticket = self.queue(&session, &subscription, (req, key), submit)?;
        drop(in_order);
        Ok((session, subscription, ticket))
    }

    /// Returns what this client is to what it says in a session.
    pub(super) fn prompter(&self, subscription: &Arc<Subscription>) -> Prompter {
        Prompter {
            client: self.client.id(),
            name: self.client.name(),
            subscription: subscription.clone(),
        }
    }

    fn queue(
        &self,
        session: &Session,
        subscription: &Arc<Subscription>,
        (req, key): (PromptRequest, Option<String>),
        submit: fn(&Session, Prompt) -> Result<Ticket, Refusal>,
    ) -> HandlerResult<Ticket> {
        check::prompt(&req.prompt, &self.core().info.prompt)?;
        let prompt = Prompt::new(req.prompt, req.meta, Some(self.prompter(subscription)));
        let prompt = match key {
            Some(key) => prompt.once_as(&key),
            None => Ok(prompt),
        };
        let ticket = prompt.and_then(|prompt| submit(session, prompt));
        ticket.map_err(|refusal| refused(session.id(), refusal))
    }

    /// Answers a prompt with its stop reason and the other members of the answer.
    pub(super) async fn answer_prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<(StopReason, Option<Json>)> {
        self.client
            .admit("session/prompt", Some(req.session_id.as_str()))?;
        let (session, subscription, mut ticket) =
            self.submit(req, Session::submit_in_place).await?;
        let result = tokio::select! {
            biased;
            result = ticket.result() => result,
            // Boxed, because it is rare, and every prompt has room for it otherwise.
            () = ctx.request_cancelled() => Box::pin(self.ended_early(ctx, &session, &mut ticket)).await?,
        };
        // When older events cannot be read the client knows it by the gap, not by this answer.
        let _ = subscription.sent_through(result.last_event).await;
        ctx.keep_until_answered(result.barrier);
        Ok((result.stop?, result.members))
    }

    /// Once the request is answered, the client is sent what follows, and open questions.
    fn after_answer(
        &self,
        ctx: &AgentContext,
        session: &Session,
        last: u64,
        held: (Option<Unanswered>, Barrier),
    ) {
        ctx.keep_until_answered(held);
        let questions = session.open_questions();
        if questions.is_empty() {
            return;
        }
        let (session, client, answered) = (session.clone(), self.client.clone(), ctx.answered());
        tokio::spawn(async move {
            answered.await;
            for question in questions.iter().filter(|question| question.id.0 <= last) {
                session.offer(question, &client);
            }
        });
    }

    /// The client has cancelled its request, or the connection is closing.
    async fn ended_early(
        &self,
        ctx: &AgentContext,
        session: &Session,
        ticket: &mut Ticket,
    ) -> HandlerResult<TurnResult> {
        if !ctx.peer().is_closing() {
            ticket.cancel();
            return Ok(ticket.result().await);
        }
        let policy = session.policies().on_disconnect;
        let policy = policy.unwrap_or(self.client.on_disconnect);
        let OnDisconnect::Cancel { after } = policy else {
            return Err(HandlerError::cancelled());
        };
        if let Ok(result) = tokio::time::timeout(after, ticket.result()).await {
            return Ok(result);
        }
        let has_other = session.state().attached(true) > 1;
        if has_other {
            return Err(HandlerError::cancelled());
        }
        ticket.cancel();
        if let Ok(result) = tokio::time::timeout(CLOSING_DEADLINE, ticket.result()).await {
            return Ok(result);
        }
        // Whoever set it before wanted the same.
        let _ = ticket.progress.abort.set(());
        Ok(ticket.result().await)
    }
}

/// Returns the answer to a prompt.
pub(super) fn prompt_response(stop: StopReason, members: Option<&Json>) -> PromptResponse {
    let members = members.and_then(|members| members.parse().ok());
    let members: super::answer::Known = members.unwrap_or_default();
    PromptResponse::new(stop).with_meta(members.meta)
}

impl Agent for ServerConnection {
    async fn initialize(
        &self,
        ctx: &AgentContext,
        req: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let info = &self.core().info;
        let methods = methods_for(&req.client_capabilities, &info.auth_methods);
        self.client
            .initialize(ctx.peer(), req.client_capabilities, req.client_info);
        let session = SessionCapabilities::new()
            .with_list(SessionListCapabilities::new())
            .with_delete(SessionDeleteCapabilities::new())
            .with_additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .with_resume(SessionResumeCapabilities::new())
            .with_close(SessionCloseCapabilities::new());
        #[cfg(feature = "unstable")]
        let session = match self.core().announces_fork {
            true => session.with_fork(SessionForkCapabilities::new()),
            false => session,
        };
        let mut capabilities = AgentCapabilities::new()
            .with_load_session(true)
            .with_prompt_capabilities(info.prompt.clone())
            .with_mcp_capabilities(info.mcp.clone())
            .with_session_capabilities(session)
            .with_meta(extension::advertised(info));
        if info.offers_logout() {
            let auth = AgentAuthCapabilities::new().with_logout(LogoutCapabilities::new());
            capabilities = capabilities.with_auth(auth);
        }
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .with_agent_capabilities(capabilities)
            .with_auth_methods(methods)
            .with_agent_info(info.implementation.clone());
        Ok(match extension::test_prompts(&info.test_prompts) {
            Some(meta) => response.with_meta(meta),
            None => response,
        })
    }

    async fn authenticate(
        &self,
        ctx: &AgentContext,
        req: AuthenticateRequest,
    ) -> HandlerResult<AuthenticateResponse> {
        self.client.initialized()?;
        let methods = self.core().info.auth_methods.iter();
        let known: Vec<_> = methods.filter_map(method_id).collect();
        if !known.contains(&&req.method_id) {
            let known: Vec<_> = known.iter().map(|id| id.as_str()).collect();
            let id = req.method_id.as_str();
            let reason = format!("there is no method {id:?}, only {known:?}");
            return Err(HandlerError::invalid_params("/methodId", reason));
        }
        let login = Login::new(req.method_id, self.client.clone(), ctx.request_id());
        self.core().handler.authenticate(&login).await?;
        self.client.set_authenticated(true);
        Ok(AuthenticateResponse::new())
    }

    async fn logout(&self, _: &AgentContext, _: LogoutRequest) -> HandlerResult<LogoutResponse> {
        self.client.initialized()?;
        if !self.core().info.offers_logout() {
            return Err(HandlerError::method_not_found("logout"));
        }
        self.core().handler.logout().await?;
        self.client.set_authenticated(false);
        Ok(LogoutResponse::new())
    }

    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let environment = self.environment(
            ("session/new", None),
            &req.cwd,
            req.additional_directories,
            req.mcp_servers,
        )?;
        let cwd = req.cwd.clone();
        let joining = Joining::New {
            cwd: req.cwd,
            environment,
            opening: self.opening(req.meta),
        };
        let session = self.join(ctx, joining, Replay::Nothing).await?;
        let mut response = NewSessionResponse::new(session.id());
        response.meta = extension::kept_cwd(&session, &cwd);
        (response.modes, response.config_options) = self.settings(&session);
        Ok(response)
    }

    async fn load_session(
        &self,
        ctx: &AgentContext,
        req: LoadSessionRequest,
    ) -> HandlerResult<LoadSessionResponse> {
        let environment = self.environment(
            ("session/load", Some(&req.session_id)),
            &req.cwd,
            req.additional_directories,
            req.mcp_servers,
        )?;
        let place = (req.cwd.clone(), environment);
        let joined = self.join_existing(ctx, req.session_id, place, req.meta, Replay::Load);
        let session = joined.await?;
        let mut response = LoadSessionResponse::new();
        response.meta = extension::kept_cwd(&session, &req.cwd);
        (response.modes, response.config_options) = self.settings(&session);
        Ok(response)
    }

    async fn resume_session(
        &self,
        ctx: &AgentContext,
        req: ResumeSessionRequest,
    ) -> HandlerResult<ResumeSessionResponse> {
        let environment = self.environment(
            ("session/resume", Some(&req.session_id)),
            &req.cwd,
            req.additional_directories,
            req.mcp_servers,
        )?;
        let place = (req.cwd.clone(), environment);
        let joined = self.join_existing(ctx, req.session_id, place, req.meta, Replay::Nothing);
        let session = joined.await?;
        let mut response = ResumeSessionResponse::new();
        response.meta = extension::kept_cwd(&session, &req.cwd);
        (response.modes, response.config_options) = self.settings(&session);
        Ok(response)
    }

    async fn list_sessions(
        &self,
        _: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        self.client.admit("session/list", None)?;
        if let Some(cwd) = &req.cwd {
            check::absolute("/cwd", cwd)?;
        }
        let after = req.cursor.as_deref().map(check::read_cursor).transpose()?;
        let (records, next) = match self.client.access() {
            Access::Session(own) => {
                let own = self.core().find(own).await?;
                let is_listed = |record: &SessionRecord| {
                    after.is_none() && req.cwd.as_ref().is_none_or(|cwd| *cwd == record.cwd)
                };
                (own.into_iter().filter(is_listed).collect(), None)
            }
            _ => self.core().list(req.cwd, after).await?,
        };
        let infos: Vec<_> = records.into_iter().map(info).collect();
        let mut response = ListSessionsResponse::new(infos);
        response.next_cursor = next;
        Ok(response)
    }

    async fn close_session(
        &self,
        _: &AgentContext,
        req: CloseSessionRequest,
    ) -> HandlerResult<CloseSessionResponse> {
        self.client
            .admit("session/close", Some(req.session_id.as_str()))?;
        self.core().leave(&self.client, &req.session_id).await?;
        Ok(CloseSessionResponse::new())
    }

    /// Deleting a session that does not exist succeeds.
    /// Spec: <https://agentclientprotocol.com/protocol/v1/session-delete#semantics>
    async fn delete_session(
        &self,
        _: &AgentContext,
        req: DeleteSessionRequest,
    ) -> HandlerResult<DeleteSessionResponse> {
        self.client
            .admit("session/delete", Some(req.session_id.as_str()))?;
        self.core().delete(&req.session_id).await?;
        Ok(DeleteSessionResponse::new())
    }

    async fn set_session_mode(
        &self,
        _: &AgentContext,
        req: SetSessionModeRequest,
    ) -> HandlerResult<SetSessionModeResponse> {
        self.client
            .admit("session/set_mode", Some(req.session_id.as_str()))?;
        let (session, subscription) = self.attached(&req.session_id).await?;
        let change = crate::SettingsChange::Mode(req.mode_id);
        let last = session.change_settings(change).await?;
        let _ = subscription.sent_through(last).await;
        Ok(SetSessionModeResponse::new())
    }

    async fn set_session_config_option(
        &self,
        _: &AgentContext,
        req: SetSessionConfigOptionRequest,
    ) -> HandlerResult<SetSessionConfigOptionResponse> {
        self.client
            .admit("session/set_config_option", Some(req.session_id.as_str()))?;
        let (session, subscription) = self.attached(&req.session_id).await?;
        let change = crate::SettingsChange::Option(req.config_id, req.value);
        let last = session.change_settings(change).await?;
        let _ = subscription.sent_through(last).await;
        let options = self.settings(&session).1.unwrap_or_default();
        Ok(SetSessionConfigOptionResponse::new(options))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        let (stop, members) = self.answer_prompt(ctx, req).await?;
        Ok(prompt_response(stop, members.as_ref()))
    }

    async fn cancel(&self, _: &AgentContext, note: CancelNotification) -> HandlerResult<()> {
        if let Some(subscription) = self.client.subscription(&note.session_id) {
            let (session, client) = (subscription.session(), Some(self.client.id()));
            let _in_order = session.in_order(false).await?;
            session.cancel_running_and(client);
        }
        Ok(())
    }

    #[cfg(feature = "unstable")]
    async fn message_mcp_notification(
        &self,
        _: &AgentContext,
        note: MessageMcpNotification,
    ) -> HandlerResult<()> {
        self.client.admit("mcp/message", None)?;
        self.client.notified(note).await;
        Ok(())
    }

    async fn ext_request(
        &self,
        ctx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        let session = params.as_ref().map(Json::as_raw);
        let session = session.and_then(acp_sdk::envelope::session);
        self.client.admit(method, session.as_deref())?;
        if let Some(answer) = extension::request(self, ctx, method, params.as_ref()).await {
            return answer;
        }
        self.core().handler.ext_request(ctx, method, params).await
    }

    async fn ext_notification(
        &self,
        ctx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        let session = params.as_ref().map(Json::as_raw);
        let session = session.and_then(acp_sdk::envelope::session);
        self.client.admit(method, session.as_deref())?;
        let handler = &self.core().handler;
        handler.ext_notification(ctx, method, params).await;
        Ok(())
    }
}

impl ServerConnection {
    /// Returns modes and config options as this client may see them.
    pub(super) fn settings(
        &self,
        session: &Session,
    ) -> (Option<SessionModeState>, Option<Vec<SessionConfigOption>>) {
        let booleans = self.client.offers(Capability::BooleanOptions);
        let state = session.state();
        (state.settings.mode_state(), state.settings.shown(booleans))
    }
}

/// Returns the authentication methods for a client: a login in a terminal is for those that have
/// one.
fn methods_for(capabilities: &ClientCapabilities, all: &[AuthMethod]) -> Vec<AuthMethod> {
    let offered = |method: &&AuthMethod| {
        capabilities.auth.terminal || !matches!(method, AuthMethod::Terminal(_))
    };
    all.iter().filter(offered).cloned().collect()
}

/// Returns the id of a method that `authenticate` accepts.
fn method_id(method: &AuthMethod) -> Option<&AuthMethodId> {
    match method {
        AuthMethod::Agent(method) => Some(&method.id),
        _ => None,
    }
}

fn info(record: SessionRecord) -> SessionInfo {
    let mut info = SessionInfo::new(record.id, record.cwd).with_updated_at(record.updated_at);
    info.title = record.title;
    info.additional_directories = record.additional_directories;
    info
}

pub(crate) fn closed(id: &SessionId) -> HandlerError {
    let reason = format!("session {id} is closed; load or resume it first");
    HandlerError::new(ErrorCode::RESOURCE_NOT_FOUND, reason)
}

pub(crate) fn refused(id: &SessionId, refusal: Refusal) -> HandlerError {
    match refusal {
        Refusal::Closed => closed(id),
        Refusal::TooLarge | Refusal::OtherContent => {
            HandlerError::invalid_params("/prompt", refusal.reason())
        }
        Refusal::NameLength => {
            HandlerError::invalid_params(check::IDEMPOTENCY_KEY, refusal.reason())
        }
        _ => {
            let reason = format!("session {id} refused the prompt: {}", refusal.reason());
            HandlerError::new(ErrorCode::INVALID_REQUEST, reason)
        }
    }
}

pub(crate) fn store_failed(id: &SessionId, error: &crate::store::StoreError) -> HandlerError {
    HandlerError::internal(format!("the store failed for session {id}: {error}"))
}
