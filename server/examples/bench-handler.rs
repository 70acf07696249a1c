//! The agent that benchmarks of the runtime measure: the job of the `bench-agent` of `acp-sdk`,
//! done by a handler. The difference between the two is what sessions, the event log and
//! cancellation cost. With an argument the events are kept in that file, by SQLite.

use acp_sdk::v1::*;
use acp_server::{Handler, HandlerError, HandlerResult, Server, Turn};

struct Bench;

impl Handler for Bench {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
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
        turn.send(SessionUpdate::AgentMessageChunk(chunk)).await?;
    }
    Ok(())
}

async fn permission(turn: &Turn) -> HandlerResult<()> {
    let call = turn.tool_call("Run a command", ToolKind::Execute).await?;
    let decision = turn.ask_permission(&call).await?;
    call.complete("").await?;
    if decision.is_allowed() {
        return Ok(());
    }
    Err(HandlerError::internal("expected the option allow"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> HandlerResult<()> {
    let mut server = Server::builder(Bench);
    #[cfg(feature = "sqlite")]
    if let Some(path) = std::env::args_os().nth(1) {
        server = server.store(acp_server::store::SqliteStore::open(path)?);
    }
    Ok(server.build().serve_stdio().await?)
}
