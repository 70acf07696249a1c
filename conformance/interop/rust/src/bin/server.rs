//! The official server with an agent that answers pings and streams, to measure beside ours. Prints its
//! address on standard error.

use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, InitializeRequest, InitializeResponse, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, SessionNotification, SessionUpdate,
    StopReason, TextContent,
};
use agent_client_protocol::{Agent, Client, ConnectTo};
use agent_client_protocol_http::AcpHttpServer;

static SESSIONS: AtomicU64 = AtomicU64::new(0);

fn agent() -> impl ConnectTo<Client> {
    Agent
        .v1()
        .on_receive_request(
            async |_: InitializeRequest, responder, _| {
                responder.respond(InitializeResponse::new(ProtocolVersion::V1))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async |_: NewSessionRequest, responder, _| {
                let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
                responder.respond(NewSessionResponse::new(format!("sess_{number:032}")))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async |prompt: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let said = match prompt.prompt.first() {
                    Some(ContentBlock::Text(text)) => text.text.clone(),
                    _ => String::new(),
                };
                let count = said.strip_prefix("stream ").and_then(|count| count.parse::<u64>().ok());
                // A handler holds up its connection, so a long one is a task.
                cx.spawn({
                    let cx = cx.clone();
                    async move {
                        for number in 0..count.unwrap_or(0) {
                            let text = format!("{number:08} {}", "x".repeat(51));
                            let block = ContentBlock::Text(TextContent::new(text));
                            let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block));
                            cx.send_notification(SessionNotification::new(prompt.session_id.clone(), update))?;
                            if number % 64 == 0 {
                                tokio::task::yield_now().await;
                            }
                        }
                        responder.respond(PromptResponse::new(StopReason::EndTurn))
                    }
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/acp", listener.local_addr()?);
    Ok(axum::serve(listener, AcpHttpServer::new(agent).into_router()).await?)
}
