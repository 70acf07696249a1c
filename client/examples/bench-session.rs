//! The client that benchmarks measure: as `bench-client` of `acp-sdk`, with sessions and turns.
//! Arguments: any of `stream=N`, `ping=N`, `perm=N`, in order.
//!
//! Prompts the agent on standard input and output, counts what arrives and reports it.

use acp_client::{Client, Event, Policy, Session};
use acp_sdk::v1::{ContentBlock, SessionUpdate};

#[path = "../../sdk/examples/support/runtime.rs"]
mod runtime;

/// What may fail on the way to a result.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What has arrived since the last report.
#[derive(Default)]
struct Counts {
    messages: u64,
    chars: usize,
}

async fn prompt(session: &Session, text: String, counts: &mut Counts) -> Result<()> {
    let mut turn = session.prompt(text).await?;
    while let Some(event) = turn.next().await {
        match event.event {
            Event::Update(SessionUpdate::AgentMessageChunk(chunk)) => {
                if let ContentBlock::Text(text) = chunk.content {
                    counts.messages += 1;
                    counts.chars += text.text.len();
                }
            }
            Event::Permission(_) => counts.messages += 1,
            _ => {}
        }
    }
    turn.outcome().await?;
    Ok(())
}

async fn phase(session: &Session, arg: &str) -> Result<()> {
    let bad = || format!("expected KIND=COUNT, found {arg}");
    let (kind, count) = arg.split_once('=').ok_or_else(bad)?;
    let count: u64 = count.parse().map_err(|_| bad())?;
    let mut counts = Counts::default();
    if kind == "ping" {
        prompt(session, "begin ping".into(), &mut counts).await?;
        for _ in 0..count {
            prompt(session, "ping".into(), &mut counts).await?;
            counts.messages += 1;
        }
    } else {
        prompt(session, format!("{kind} {count}"), &mut counts).await?;
    }
    let Counts { messages, chars } = counts;
    let report = format!("report {kind} {messages} {chars}");
    prompt(session, report, &mut Counts::default()).await
}

async fn run() -> Result<()> {
    let builder = Client::builder().permissions(Policy::ApproveAll);
    let client = builder.connect(acp_sdk::stdio()?).await?;
    let session = client.new_session("/").await?;
    for arg in std::env::args().skip(1) {
        phase(&session, &arg).await?;
    }
    Ok(())
}

fn main() -> Result<()> {
    runtime::runtime()?.block_on(run())
}
