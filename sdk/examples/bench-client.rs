//! The client that benchmarks measure. Arguments: any of `stream=N`, `ping=N`, `perm=N`, in order.
//!
//! Prompts the agent on standard input and output, counts what arrives and reports it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use acp_sdk::{ConnectionBuilder, HandlerError, HandlerResult, v1::*};

#[path = "support/runtime.rs"]
mod runtime;

/// What may fail on the way to a result.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What has arrived since the last report.
#[derive(Default)]
struct Counts {
    messages: AtomicU64,
    chars: AtomicU64,
}

struct Bench(Arc<Counts>);

impl Client for Bench {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        if let SessionUpdate::AgentMessageChunk(chunk) = note.update
            && let ContentBlock::Text(text) = chunk.content
        {
            self.0.messages.fetch_add(1, Relaxed);
            self.0.chars.fetch_add(text.text.len() as u64, Relaxed);
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        self.0.messages.fetch_add(1, Relaxed);
        let option = req
            .options
            .first()
            .ok_or_else(|| HandlerError::invalid_params("/options", "no option"))?;
        let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
        Ok(RequestPermissionResponse::new(chosen))
    }
}

async fn prompt(agent: &AgentHandle, session: &SessionId, text: String) -> Result<()> {
    let block = ContentBlock::from(text);
    agent
        .prompt(PromptRequest::new(session.clone(), vec![block]))
        .await?;
    Ok(())
}

async fn phase(agent: &AgentHandle, session: &SessionId, counts: &Counts, arg: &str) -> Result<()> {
    let bad = || format!("expected KIND=COUNT, found {arg}");
    let (kind, count) = arg.split_once('=').ok_or_else(bad)?;
    let count: u64 = count.parse().map_err(|_| bad())?;
    counts.messages.store(0, Relaxed);
    counts.chars.store(0, Relaxed);
    if kind == "ping" {
        prompt(agent, session, "begin ping".into()).await?;
        for _ in 0..count {
            prompt(agent, session, "ping".into()).await?;
            counts.messages.fetch_add(1, Relaxed);
        }
    } else {
        prompt(agent, session, format!("{kind} {count}")).await?;
    }
    let (messages, chars) = (counts.messages.load(Relaxed), counts.chars.load(Relaxed));
    prompt(agent, session, format!("report {kind} {messages} {chars}")).await
}

async fn run() -> Result<()> {
    let counts = Arc::new(Counts::default());
    let transport = acp_sdk::stdio()?;
    let connection = ConnectionBuilder::new()
        .client(Bench(counts.clone()), transport)
        .start();
    let agent = connection.handle().clone();
    agent
        .initialize(InitializeRequest::new(ProtocolVersion::V1))
        .await?;
    let new = agent
        .new_session(NewSessionRequest::new("/", vec![]))
        .await?;
    for arg in std::env::args().skip(1) {
        phase(&agent, &new.session_id, &counts, &arg).await?;
    }
    drop(connection);
    Ok(())
}

fn main() -> Result<()> {
    runtime::runtime()?.block_on(run())
}
