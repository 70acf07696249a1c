//! Measures many sessions of one server: memory of idle ones, and streaming in all at once.
//!
//! `bench-sessions [IDLE] [STREAMING] [UPDATES]` (default 10000, 1000, 1000). Linux only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use acp_sdk::HandlerResult;
use acp_sdk::v1::*;
use acp_server::{Handler, Limits, Server, Turn};

struct Stream;

impl Handler for Stream {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let count: u64 = turn.prompt_text().parse()?;
        for number in 0..count {
            let text = format!("{number:08} the quick brown fox jumps over the lazy dog, and so");
            turn.send_text(text).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

impl Client for Counter {
    async fn session_update(&self, _: &ClientContext, _: SessionNotification) -> HandlerResult<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Ok(RequestPermissionResponse::new(
            RequestPermissionOutcome::Cancelled,
        ))
    }
}

/// Memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or_default()
}

fn argument(at: usize, default: u64) -> u64 {
    let argument = std::env::args().nth(at);
    argument
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> HandlerResult<()> {
    let (idle, streaming, updates) = (argument(1, 10_000), argument(2, 1000), argument(3, 1000));
    let mut limits = Limits::default();
    limits.sessions = usize::try_from(idle + streaming + 1)?;
    let server = Server::builder(Stream).limits(limits).build();
    let (near, far) = tokio::io::duplex(1 << 16);
    let _connection = server.attach(tokio::io::split(far));
    let counter = Counter::default();
    let client = acp_sdk::connect(counter.clone(), tokio::io::split(near)).start();
    let agent = client.handle();
    agent
        .initialize(InitializeRequest::new(ProtocolVersion::V1))
        .await?;
    let create = || agent.new_session(NewSessionRequest::new("/", Vec::new()));
    create().await?;
    let before = resident();
    for _ in 0..idle {
        create().await?;
    }
    let bytes = (resident() - before) * 1024 / idle.max(1);
    eprintln!("{idle} idle sessions, attached to one client: {bytes} bytes each");

    let mut sessions = Vec::new();
    for _ in 0..streaming {
        sessions.push(create().await?.session_id);
    }
    let begun = Instant::now();
    let mut turns = tokio::task::JoinSet::new();
    for session in sessions {
        let agent = agent.clone();
        let text = ContentBlock::Text(TextContent::new(updates.to_string()));
        turns.spawn(async move { agent.prompt(PromptRequest::new(session, vec![text])).await });
    }
    while let Some(ended) = turns.join_next().await {
        ended??;
    }
    let (seconds, received) = (
        begun.elapsed().as_secs_f64(),
        counter.0.load(Ordering::Relaxed),
    );
    assert_eq!(received, streaming * updates, "updates received");
    eprintln!(
        "{streaming} sessions with {updates} updates each on one connection: {seconds:.2} s, {:.0} updates/s",
        (streaming * updates) as f64 / seconds
    );
    Ok(())
}
