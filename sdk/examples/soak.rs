//! Millions of requests, each answered exactly once, in flat memory.
//!
//! `cargo run --release -p acp-sdk --example soak -- [REQUESTS]`, ten million by default:
//! half of them between our client and our agent, half from a client that counts raw lines
//! and so would notice a response that came twice. Prints memory as it goes. `BENCH_THREADS=2` runs
//! it on two worker threads.

// The figures are the result of this program.
#![allow(clippy::print_stdout, reason = "the figures are the result")]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use acp_sdk::runtime::Json;
use acp_sdk::{HandlerError, HandlerResult, v1::*};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;

#[path = "support/runtime.rs"]
mod runtime;

/// What may fail on the way to a result.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Requests in flight at once.
const DEEP: u64 = 64;

/// Answers every extension request with its own params.
struct Echo;

impl Agent for Echo {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> {
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }

    async fn ext_request(
        &self,
        _: &AgentContext,
        _: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        // Every eighth answer goes the long way, through a task of its own.
        if params
            .as_ref()
            .is_some_and(|params| params.get().ends_with("8}"))
        {
            tokio::task::yield_now().await;
        }
        params.ok_or_else(|| HandlerError::invalid_params("", "no params"))
    }
}

struct Editor;

impl Client for Editor {
    async fn session_update(&self, _: &ClientContext, _: SessionNotification) -> HandlerResult<()> {
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

fn agent() -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(Echo, (reader, writer)));
    ours
}

/// Our client, which checks that each answer is the one to its request.
async fn typed(requests: u64) -> Result<()> {
    let (reader, writer) = tokio::io::split(agent());
    let connection = acp_sdk::connect(Editor, (reader, writer)).start();
    let agent = connection.handle().clone();
    let next = Arc::new(AtomicU64::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..DEEP {
        let (agent, next) = (agent.clone(), next.clone());
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= requests {
                    return Result::Ok(());
                }
                progress("typed", number, requests);
                let params = Json::from(json!({"n": number}));
                let answer = agent.ext_request("_echo", Some(&params)).await?;
                if answer != params {
                    return Err(format!("{params:?} was answered by {answer:?}").into());
                }
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    drop(connection);
    Ok(())
}

/// A client that counts lines: one answer per id, no more.
async fn raw(requests: u64) -> Result<()> {
    let (reader, mut writer) = tokio::io::split(agent());
    let mut lines = BufReader::new(reader).lines();
    let mut waiting = HashSet::new();
    let mut sent = 0;
    for done in 0..requests {
        while sent < requests && sent < done + DEEP {
            let end = (sent + DEEP / 2).min(requests);
            let batch: String = (sent..end)
                .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_echo\",\"params\":{{\"n\":{id}}}}}\n"))
                .collect();
            writer.write_all(batch.as_bytes()).await?;
            waiting.extend(sent..end);
            sent = end;
        }
        progress("raw", done, requests);
        let line = lines.next_line().await?;
        let line = line.ok_or_else(|| format!("only {done} answers came"))?;
        let answer: Value = serde_json::from_str(&line)?;
        let id = answer["id"]
            .as_u64()
            .filter(|id| answer["result"]["n"] == *id);
        if !id.is_some_and(|id| waiting.remove(&id)) {
            return Err(format!("a wrong or second answer: {line}").into());
        }
    }
    writer.shutdown().await?;
    match lines.next_line().await? {
        None => Ok(()),
        Some(line) => Err(format!("one answer too many: {line}").into()),
    }
}

fn progress(what: &str, number: u64, of: u64) {
    if number.is_multiple_of((of / 10).max(1)) {
        println!("{what}: {number} requests, {} KiB resident", resident_kib());
    }
}

/// Resident memory, where the system tells.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn main() -> Result<()> {
    runtime::runtime()?.block_on(soak())
}

async fn soak() -> Result<()> {
    let asked = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "10000000".to_owned());
    let requests: u64 = asked
        .parse()
        .map_err(|_| format!("not a number of requests: {asked}"))?;
    let start = Instant::now();
    typed(requests / 2).await?;
    raw(requests - requests / 2).await?;
    println!(
        "{requests} requests, each answered once, in {:.1?}",
        start.elapsed()
    );
    Ok(())
}
