//! The agent that benchmarks of the runtime measure: the job of the `bench-agent` of `acp-sdk`,
//! done by a handler. The difference between the two is what sessions, the event log and
//! cancellation cost.

use acp_sdk::v1::*;
use acp_server::{Handler, HandlerError, HandlerResult, Turn};

struct Bench;

impl Handler for Bench {
    async fn prompt(&self, turn: Turn) -> HandlerResult<StopReason> {
        let said = turn.prompt_text();
        let (word, count) = said.split_once(' ').unwrap_or((&said, "0"));
        let count: u64 = count.parse()?;
        match word {
            "stream" => stream(&turn, count).await?,
            "perm" => {
                for _ in 0..count {
                    permission(&turn).await?;
                }
            }
            _ => {}
        }
        Ok(StopReason::EndTurn)
    }
}

/// Chunks without the id of a message, for the job has none.
async fn stream(turn: &Turn, count: u64) -> HandlerResult<()> {
    for number in 0..count {
        let text = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
        turn.update(SessionUpdate::AgentMessageChunk(chunk)).await?;
    }
    Ok(())
}

/// A request about a tool call that was not announced, for so the job has it.
async fn permission(turn: &Turn) -> HandlerResult<()> {
    let call = ToolCallUpdate::new("call_1").with_title("Run a command");
    let options = vec![
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ];
    let request = RequestPermissionRequest::new(turn.session().id(), call, options);
    let answer = turn.client().request_permission(request).await?;
    match answer.outcome {
        RequestPermissionOutcome::Selected(chosen) if chosen.option_id == "allow" => Ok(()),
        other => Err(HandlerError::internal(format!(
            "expected the option allow, got {other:?}"
        ))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp_sdk::Result<()> {
    acp_server::serve_stdio(Bench).await
}
