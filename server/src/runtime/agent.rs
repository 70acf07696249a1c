//! Each method of the agent's side, in terms of the runtime.

use std::sync::Arc;

use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Json};

use super::{Runtime, announce, check, closed};
use crate::Handler;
use crate::session::{Refusal, Session, Surroundings};
use crate::turn;

/// Sessions to a page of `session/list`.
const PAGE: usize = 20;

impl<H: Handler> Agent for Runtime<H> {
    /// Version 1 is the only one there is, so it answers every request.
    /// Spec: <https://agentclientprotocol.com/protocol/v1/initialization#version-negotiation>
    async fn initialize(
        &self,
        _: &AgentContext,
        req: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let methods = methods_for(&req.client_capabilities, &self.profile.auth_methods);
        self.connection.initialize(req.client_capabilities);
        let session = SessionCapabilities::new()
            .with_list(SessionListCapabilities::new())
            .with_delete(SessionDeleteCapabilities::new())
            .with_additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .with_resume(SessionResumeCapabilities::new())
            .with_close(SessionCloseCapabilities::new());
        let mut capabilities = AgentCapabilities::new()
            .with_load_session(true)
            .with_prompt_capabilities(self.profile.prompt.clone())
            .with_mcp_capabilities(self.profile.mcp.clone())
            .with_session_capabilities(session);
        if !self.profile.auth_methods.is_empty() {
            let auth = AgentAuthCapabilities::new().with_logout(LogoutCapabilities::new());
            capabilities = capabilities.with_auth(auth);
        }
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .with_agent_capabilities(capabilities)
            .with_auth_methods(methods)
            .with_agent_info(self.profile.info.clone()))
    }

    async fn authenticate(
        &self,
        _: &AgentContext,
        req: AuthenticateRequest,
    ) -> HandlerResult<AuthenticateResponse> {
        self.connection.offered()?;
        let known: Vec<_> = self
            .profile
            .auth_methods
            .iter()
            .filter_map(method_id)
            .collect();
        if !known.contains(&&req.method_id) {
            let known: Vec<_> = known.iter().map(|id| id.as_str()).collect();
            let reason = format!(
                "there is no method {:?}, only {known:?}",
                req.method_id.as_str()
            );
            return Err(HandlerError::invalid_params("/methodId", reason));
        }
        self.handler.authenticate(&req.method_id).await?;
        self.connection.set_authenticated(true);
        Ok(AuthenticateResponse::new())
    }

    async fn logout(&self, _: &AgentContext, _: LogoutRequest) -> HandlerResult<LogoutResponse> {
        self.connection.offered()?;
        if self.profile.auth_methods.is_empty() {
            return Err(HandlerError::method_not_found("logout"));
        }
        self.handler.logout().await?;
        self.connection.set_authenticated(false);
        Ok(LogoutResponse::new())
    }

    async fn new_session(
        &self,
        cx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let (offered, surroundings) =
            self.may_open(&req.cwd, req.additional_directories, req.mcp_servers)?;
        let session = self.create(&req.cwd, surroundings).await?;
        announce::commands(cx, &session);
        let mut response = NewSessionResponse::new(session.id());
        (response.modes, response.config_options) = settings(&session, &offered);
        Ok(response)
    }

    async fn load_session(
        &self,
        cx: &AgentContext,
        req: LoadSessionRequest,
    ) -> HandlerResult<LoadSessionResponse> {
        let (offered, surroundings) =
            self.may_open(&req.cwd, req.additional_directories, req.mcp_servers)?;
        let session = self.reopen(&req.session_id, &req.cwd, surroundings).await?;
        let replaying = async {
            // Whoever sends in this session meanwhile waits until all is told.
            let mut wire = session.wire().await;
            wire.replay(&session, &*self.store, cx.client(), &offered)
                .await
        };
        tokio::select! {
            biased;
            () = cx.cancelled() => return Err(HandlerError::cancelled()),
            replayed = replaying => replayed?,
        }
        announce::commands(cx, &session);
        let mut response = LoadSessionResponse::new();
        (response.modes, response.config_options) = settings(&session, &offered);
        Ok(response)
    }

    async fn resume_session(
        &self,
        cx: &AgentContext,
        req: ResumeSessionRequest,
    ) -> HandlerResult<ResumeSessionResponse> {
        let (offered, surroundings) =
            self.may_open(&req.cwd, req.additional_directories, req.mcp_servers)?;
        let session = self.reopen(&req.session_id, &req.cwd, surroundings).await?;
        announce::commands(cx, &session);
        let mut response = ResumeSessionResponse::new();
        (response.modes, response.config_options) = settings(&session, &offered);
        Ok(response)
    }

    async fn list_sessions(
        &self,
        _: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        self.connection.offered()?;
        if let Some(cwd) = &req.cwd {
            check::absolute("/cwd", cwd)?;
        }
        let before = req.cursor.as_deref().map(check::read_cursor).transpose()?;
        // One more than a page tells whether there is a next one.
        let found = self.store.list(req.cwd.as_deref(), before, PAGE + 1).await;
        let mut found =
            found.map_err(|reason| HandlerError::internal(format!("the store: {reason}")))?;
        let more = found.len() > PAGE;
        found.truncate(PAGE);
        let last = found.last().map(|record| check::cursor(record.number));
        let mut response =
            ListSessionsResponse::new(found.into_iter().map(info).collect::<Vec<_>>());
        response.next_cursor = last.filter(|_| more);
        Ok(response)
    }

    async fn close_session(
        &self,
        _: &AgentContext,
        req: CloseSessionRequest,
    ) -> HandlerResult<CloseSessionResponse> {
        self.connection.offered()?;
        if !self.deactivate(&req.session_id).await && self.record(&req.session_id).await?.is_none()
        {
            return Err(super::not_found(&req.session_id));
        }
        Ok(CloseSessionResponse::new())
    }

    /// Deleting what is not there is no fault.
    /// Spec: <https://agentclientprotocol.com/protocol/v1/session-delete#semantics>
    async fn delete_session(
        &self,
        _: &AgentContext,
        req: DeleteSessionRequest,
    ) -> HandlerResult<DeleteSessionResponse> {
        self.connection.offered()?;
        self.deactivate(&req.session_id).await;
        let deleted = self.store.delete(&req.session_id).await;
        deleted.map_err(|reason| super::store_failed(&req.session_id, &reason))?;
        Ok(DeleteSessionResponse::new())
    }

    async fn set_session_mode(
        &self,
        cx: &AgentContext,
        req: SetSessionModeRequest,
    ) -> HandlerResult<SetSessionModeResponse> {
        let offered = self.connection.offered()?;
        let session = self.active(&req.session_id).await?;
        session.set(|settings| settings.set_mode(&req.mode_id))?;
        self.tell_mode(cx, &session).await?;
        if let Some(options) = settings(&session, &offered).1 {
            let update = ConfigOptionUpdate::new(options);
            self.tell(cx, &session, SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        }
        self.save(&session).await?;
        Ok(SetSessionModeResponse::new())
    }

    async fn set_session_config_option(
        &self,
        cx: &AgentContext,
        req: SetSessionConfigOptionRequest,
    ) -> HandlerResult<SetSessionConfigOptionResponse> {
        let offered = self.connection.offered()?;
        let session = self.active(&req.session_id).await?;
        let mode = session.settings().mode().map(str::to_owned);
        session.set(|settings| settings.set(&req.config_id, &req.value))?;
        if session.settings().mode() != mode.as_deref() {
            self.tell_mode(cx, &session).await?;
        }
        self.save(&session).await?;
        let options = settings(&session, &offered).1.unwrap_or_default();
        Ok(SetSessionConfigOptionResponse::new(options))
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let offered = self.connection.offered()?;
        let session = self.active(&req.session_id).await?;
        check::prompt(&req.prompt, &self.profile.prompt)?;
        // Nothing has been waited for so far when the session is active, so prompts stand in
        // line in the order of their arrival, and a cancel that follows one finds it there.
        let bytes = req.prompt.iter().map(check::size).sum();
        let mut place = session
            .queue()
            .enter(bytes)
            .map_err(|refusal| match refusal {
                Refusal::Closed => closed(session.id()),
                Refusal::Full => HandlerError::new(
                    ErrorCode::INVALID_REQUEST,
                    format!(
                        "session {} has too many prompts waiting; await an answer",
                        session.id()
                    ),
                ),
            })?;
        let about = turn::About {
            client: cx.client().clone(),
            offered,
            session,
            store: self.store.clone(),
        };
        let ended = turn::run(&self.handler, cx, about, req, &mut place, self.grace).await;
        // The next prompt has its turn, and the session is idle, when the client has been told.
        cx.keep_until_answered(place);
        Ok(PromptResponse::new(ended?))
    }

    async fn cancel(&self, _: &AgentContext, note: CancelNotification) -> HandlerResult<()> {
        if let Some(session) = self.sessions.find(&note.session_id) {
            session.queue().cancel();
        }
        Ok(())
    }

    async fn ext_request(
        &self,
        cx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        self.handler.ext_request(cx, method, params).await
    }

    async fn ext_notification(
        &self,
        cx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        self.handler.ext_notification(cx, method, params).await;
        Ok(())
    }
}

impl<H: Handler> Runtime<H> {
    /// What the client offers, and what it says of a session that it may now open.
    fn may_open(
        &self,
        cwd: &str,
        additional_directories: Vec<String>,
        mcp_servers: Vec<McpServer>,
    ) -> HandlerResult<(Arc<ClientCapabilities>, Surroundings)> {
        let offered = self.connection.may_open()?;
        check::directories(cwd, &additional_directories)?;
        let surroundings = Surroundings {
            additional_directories,
            mcp_servers,
        };
        Ok((offered, surroundings))
    }

    async fn tell_mode(&self, cx: &AgentContext, session: &Session) -> HandlerResult<()> {
        if let Some(mode) = session.settings().mode() {
            let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode));
            self.tell(cx, session, update).await?;
        }
        Ok(())
    }

    /// Sends an update that belongs to no turn.
    async fn tell(
        &self,
        cx: &AgentContext,
        session: &Session,
        update: SessionUpdate,
    ) -> HandlerResult<()> {
        let mut wire = session.wire().await;
        Ok(wire
            .send(session, &*self.store, cx.client(), &update)
            .await?)
    }
}

/// Modes and config options as this client may see them.
fn settings(
    session: &Session,
    offered: &ClientCapabilities,
) -> (Option<SessionModeState>, Option<Vec<SessionConfigOption>>) {
    let booleans = crate::Capability::BooleanOptions.is_in(offered);
    session.set(|settings| (settings.mode_state(), settings.shown(booleans)))
}

/// The methods that a client may be told of: a login in a terminal is for those that have one.
fn methods_for(offered: &ClientCapabilities, all: &[AuthMethod]) -> Vec<AuthMethod> {
    let may =
        |method: &&AuthMethod| offered.auth.terminal || !matches!(method, AuthMethod::Terminal(_));
    all.iter().filter(may).cloned().collect()
}

/// The id of a method that `authenticate` takes; the others are not for it.
fn method_id(method: &AuthMethod) -> Option<&AuthMethodId> {
    match method {
        AuthMethod::Agent(method) => Some(&method.id),
        _ => None,
    }
}

fn info(record: crate::store::SessionRecord) -> SessionInfo {
    let mut info = SessionInfo::new(record.id, record.cwd).with_updated_at(record.updated_at);
    info.title = record.title;
    info.additional_directories = record.additional_directories;
    info
}
