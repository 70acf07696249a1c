//! An agent on the official SDK.

use agent_client_protocol::v1::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
    NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, SessionId,
    SessionNotification, SessionUpdate, StopReason,
};
use agent_client_protocol::{Agent, Result, Stdio, on_receive_request};

pub async fn run() -> Result<()> {
    Agent
        .v1()
        .name("official-agent")
        .on_receive_request(
            async |hello: InitializeRequest, responder, _| {
                let answer = InitializeResponse::new(hello.protocol_version);
                responder.respond(answer.agent_capabilities(AgentCapabilities::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |_: NewSessionRequest, responder, _| {
                responder.respond(NewSessionResponse::new(SessionId::new("only")))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async |prompt: PromptRequest, responder, connection| {
                for block in prompt.prompt {
                    if let ContentBlock::Text(_) = block {
                        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block));
                        let update = SessionNotification::new(prompt.session_id.clone(), update);
                        connection.send_notification(update)?;
                    }
                }
                responder.respond(PromptResponse::new(StopReason::EndTurn))
            },
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}
