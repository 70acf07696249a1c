use acp_sdk::HandlerResult;
use acp_sdk::v1::*;

pub struct Plain;

impl Agent for Plain {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .with_agent_capabilities(AgentCapabilities::new()))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("session-1"))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        request: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new("Hello."));
        let update = SessionNotification::new(request.session_id, chunk);
        ctx.client().session_update(update).await?;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

pub async fn main() -> acp_sdk::Result<()> {
    acp_sdk::serve_stdio(Plain).await
}
