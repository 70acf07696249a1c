//! The agent that benchmarks measure: `ping`, `stream N` and `perm N`, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use acp_sdk::{ConnectionBuilder, HandlerError, HandlerResult, Result, v1::*};

#[path = "support/runtime.rs"]
mod runtime;

#[derive(Default)]
struct Bench {
    sessions: AtomicU64,
}

impl Agent for Bench {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(NewSessionResponse::new(format!("sess_{number:012}")))
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let said = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.as_str(),
            _ => "",
        };
        let (word, count) = said.split_once(' ').unwrap_or((said, "0"));
        let count: u64 = count
            .parse()
            .map_err(|_| HandlerError::invalid_params("/prompt", "no number"))?;
        match word {
            "stream" => stream(cx.client(), &req.session_id, count).await?,
            "perm" => {
                for _ in 0..count {
                    permission(cx.client(), &req.session_id).await?;
                }
            }
            _ => {}
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

async fn stream(client: &ClientHandle, session: &SessionId, count: u64) -> Result<()> {
    for number in 0..count {
        let text = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
        let chunk = ContentChunk::new(ContentBlock::from(text));
        let update = SessionUpdate::AgentMessageChunk(chunk);
        client
            .session_update(SessionNotification::new(session.clone(), update))
            .await?;
    }
    Ok(())
}

async fn permission(client: &ClientHandle, session: &SessionId) -> HandlerResult<()> {
    let call = ToolCallUpdate::new("call_1").with_title("Run a command");
    let options = vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new(session.clone(), call, options);
    match client.request_permission(request).await?.outcome {
        RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "allow" => {
            Ok(())
        }
        other => Err(HandlerError::internal(format!(
            "expected the option allow, got {other:?}"
        ))),
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let runtime = runtime::runtime()?;
    runtime.block_on(ConnectionBuilder::new().serve_stdio(Bench::default()))?;
    Ok(())
}
