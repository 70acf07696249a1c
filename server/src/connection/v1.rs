//! The agent's side of a connection of protocol version 1.

use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Json};

use super::server_connection::ServerConnection;
use super::{Access, Replay, check, extension};
use crate::Login;
use crate::server::Joining;
use crate::store::SessionRecord;

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
        let joined = self.join(ctx, joining, Replay::Nothing).await?;
        let session = joined.session();
        let mut response = NewSessionResponse::new(session.id());
        response.meta = extension::kept_cwd(session, &cwd);
        (response.modes, response.config_options) = self.settings(session);
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
        let joined = joined.await?;
        let session = joined.session();
        let mut response = LoadSessionResponse::new();
        response.meta = extension::kept_cwd(session, &req.cwd);
        (response.modes, response.config_options) = self.settings(session);
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
        let joined = joined.await?;
        let session = joined.session();
        let mut response = ResumeSessionResponse::new();
        response.meta = extension::kept_cwd(session, &req.cwd);
        (response.modes, response.config_options) = self.settings(session);
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
