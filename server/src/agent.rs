//! The reference agent: every stable method of the agent's side.

use acp_sdk::v1::*;
use acp_sdk::{Error, Result};

use crate::sessions::{Session, Sessions};
use crate::turn::Turn;
use crate::words;

/// Serves one client; sessions live as long as it does.
#[derive(Debug, Default)]
pub struct ReferenceAgent {
    sessions: Sessions,
}

/// The only way to authenticate. It always succeeds.
const AUTH_METHOD: &str = "none";

impl Agent for ReferenceAgent {
    async fn initialize(&self, _: &AgentCx, _: InitializeRequest) -> Result<InitializeResponse> {
        let prompt = PromptCapabilities::new()
            .with_image(true)
            .with_audio(true)
            .with_embedded_context(true);
        let session = SessionCapabilities::new()
            .with_list(SessionListCapabilities::new())
            .with_delete(SessionDeleteCapabilities::new())
            .with_resume(SessionResumeCapabilities::new())
            .with_close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .with_load_session(true)
            .with_prompt_capabilities(prompt)
            .with_session_capabilities(session)
            .with_auth(AgentAuthCapabilities::new().with_logout(LogoutCapabilities::new()));
        let method = AuthMethodAgent::new(AUTH_METHOD, "No credentials needed");
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .with_agent_capabilities(capabilities)
            .with_auth_methods(vec![AuthMethod::Agent(method)])
            .with_agent_info(Implementation::new("acp-server", env!("CARGO_PKG_VERSION"))))
    }

    async fn authenticate(
        &self,
        _: &AgentCx,
        req: AuthenticateRequest,
    ) -> Result<AuthenticateResponse> {
        if req.method_id.as_str() == AUTH_METHOD {
            return Ok(AuthenticateResponse::new());
        }
        let reason = format!("unknown method {}; there is {AUTH_METHOD:?}", req.method_id);
        Err(Error::invalid_params("/methodId", reason))
    }

    async fn logout(&self, _: &AgentCx, _: LogoutRequest) -> Result<LogoutResponse> {
        Ok(LogoutResponse::new())
    }

    async fn new_session(&self, _: &AgentCx, req: NewSessionRequest) -> Result<NewSessionResponse> {
        check_cwd(&req.cwd)?;
        let session = self.sessions.create(req.cwd);
        Ok(NewSessionResponse::new(session.id.clone())
            .with_modes(session.modes())
            .with_config_options(session.config()))
    }

    async fn load_session(
        &self,
        cx: &AgentCx,
        req: LoadSessionRequest,
    ) -> Result<LoadSessionResponse> {
        check_cwd(&req.cwd)?;
        let session = self.sessions.find(&req.session_id)?;
        for update in session.history() {
            let note = SessionNotification::new(session.id.clone(), update);
            cx.client().session_update(note).await?;
        }
        Ok(LoadSessionResponse::new()
            .with_modes(session.modes())
            .with_config_options(session.config()))
    }

    async fn resume_session(
        &self,
        _: &AgentCx,
        req: ResumeSessionRequest,
    ) -> Result<ResumeSessionResponse> {
        check_cwd(&req.cwd)?;
        let session = self.sessions.find(&req.session_id)?;
        Ok(ResumeSessionResponse::new()
            .with_modes(session.modes())
            .with_config_options(session.config()))
    }

    async fn list_sessions(
        &self,
        _: &AgentCx,
        req: ListSessionsRequest,
    ) -> Result<ListSessionsResponse> {
        let (page, next) = self
            .sessions
            .page(req.cwd.as_deref(), req.cursor.as_deref());
        let response = ListSessionsResponse::new(page);
        Ok(match next {
            Some(cursor) => response.with_next_cursor(cursor),
            None => response,
        })
    }

    async fn close_session(
        &self,
        _: &AgentCx,
        req: CloseSessionRequest,
    ) -> Result<CloseSessionResponse> {
        self.sessions.find(&req.session_id)?.cancel();
        Ok(CloseSessionResponse::new())
    }

    async fn delete_session(
        &self,
        _: &AgentCx,
        req: DeleteSessionRequest,
    ) -> Result<DeleteSessionResponse> {
        // Deleting what is gone already is no fault of the client's.
        self.sessions
            .remove(&req.session_id)
            .inspect(|session| session.cancel());
        Ok(DeleteSessionResponse::new())
    }

    async fn set_session_mode(
        &self,
        cx: &AgentCx,
        req: SetSessionModeRequest,
    ) -> Result<SetSessionModeResponse> {
        let session = self.sessions.find(&req.session_id)?;
        session.set_mode(req.mode_id.as_str())?;
        let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(req.mode_id));
        cx.client()
            .session_update(SessionNotification::new(session.id.clone(), update))
            .await?;
        Ok(SetSessionModeResponse::new())
    }

    async fn set_session_config_option(
        &self,
        cx: &AgentCx,
        req: SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse> {
        let session = self.sessions.find(&req.session_id)?;
        session.set_config(req.config_id.as_str(), &req.value)?;
        let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(session.config()));
        cx.client()
            .session_update(SessionNotification::new(session.id.clone(), update))
            .await?;
        Ok(SetSessionConfigOptionResponse::new(session.config()))
    }

    async fn prompt(&self, cx: &AgentCx, req: PromptRequest) -> Result<PromptResponse> {
        let session = self.sessions.find(&req.session_id)?;
        // Taken before the first wait: a cancel that arrives from now on is for this prompt too.
        let cancel = session.cancellation();
        let stop = tokio::select! {
            biased;
            () = cancel.cancelled() => StopReason::Cancelled,
            () = cx.cancelled() => StopReason::Cancelled,
            stop = take_turn(cx, &session, req.prompt) => stop?,
        };
        Ok(PromptResponse::new(stop))
    }

    async fn cancel(&self, _: &AgentCx, note: CancelNotification) -> Result<()> {
        self.sessions.find(&note.session_id)?.cancel();
        Ok(())
    }
}

async fn take_turn(
    cx: &AgentCx,
    session: &Session,
    prompt: Vec<ContentBlock>,
) -> Result<StopReason> {
    let _turn = session.turn.lock().await;
    for block in &prompt {
        session.remember(SessionUpdate::UserMessageChunk(ContentChunk::new(
            block.clone(),
        )));
    }
    words::follow(&Turn::new(cx.client(), session), &prompt).await
}

/// Spec: <https://agentclientprotocol.com/protocol/v1/session-setup#working-directory>
fn check_cwd(cwd: &str) -> Result<()> {
    if std::path::Path::new(cwd).is_absolute() {
        return Ok(());
    }
    Err(Error::invalid_params(
        "/cwd",
        format!("{cwd:?} is not an absolute path"),
    ))
}
