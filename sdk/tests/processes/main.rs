//! Real child processes as peers: however they end, every call hears why, and neither a task
//! nor a descriptor stays behind.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod memory;
mod stdio;

use std::process::Stdio;
use std::time::Duration;

use acp_sdk::{CloseReason, ConnectionBuilder, HandlerError, HandlerResult, Result, v1::*};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Descriptors are counted for the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Far above what anything here takes, for a test that hangs should say where.
const LONG: Duration = Duration::from_secs(60);

struct Nobody;

impl Client for Nobody {
    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Err(HandlerError::cancelled())
    }
    async fn session_update(&self, _: &ClientContext, _: SessionNotification) -> HandlerResult<()> {
        Ok(())
    }
}

/// Runs a shell script as the agent; its exit status is the reason of the connection's end.
fn start(script: &str) -> (AgentHandle, JoinHandle<Result<()>>) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let driver = ConnectionBuilder::new()
        .explain_close(explain(child))
        .client(Nobody, (output, input));
    let handle = driver.handle().clone();
    (handle, tokio::spawn(driver))
}

/// Gives the process a moment to end by itself, and says how it did.
async fn explain(mut child: Child) -> CloseReason {
    let status = match timeout(Duration::from_millis(500), child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            let _ = child.start_kill();
            let _ = child.wait().await;
            return CloseReason::other("the agent closed its output and went on");
        }
    };
    CloseReason::other(match status {
        Ok(status) => format!("the agent ended: {status}"),
        Err(error) => format!("the agent's end is unknown: {error}"),
    })
}

fn prompt() -> PromptRequest {
    PromptRequest::new("s", vec![ContentBlock::Text(TextContent::new("x"))])
}

/// Descriptors of this process that have to do with children: pipes, and where there are any,
/// handles of processes. Runtimes of tests that wait for their turn have descriptors as well,
/// which come and go; where kinds cannot be told apart, those are counted too.
fn descriptors() -> usize {
    let of_children = |path: std::path::PathBuf| match std::fs::read_link(path) {
        Ok(kind) => {
            let kind = kind.to_string_lossy();
            kind.starts_with("pipe:") || kind.contains("pidfd")
        }
        Err(_) => true,
    };
    let all = std::fs::read_dir("/dev/fd").unwrap();
    all.filter(|entry| of_children(entry.as_ref().unwrap().path()))
        .count()
}

/// Three calls to an agent like this fail, and say `reason`; afterwards all is as before.
async fn assert_ends(script: &str, reason: &str) {
    let _alone = ALONE.lock().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    // The first child makes the runtime open what it keeps for waiting for children.
    round(script, reason).await;
    let (tasks, files) = (metrics.num_alive_tasks(), descriptors());
    for _ in 0..5 {
        round(script, reason).await;
    }
    assert_eq!(metrics.num_alive_tasks(), tasks, "{script}: tasks stay");
    assert_eq!(descriptors(), files, "{script}: descriptors stay");
}

async fn round(script: &str, reason: &str) {
    let (handle, driver) = start(script);
    let calls = (0..3).map(|_| {
        let handle = handle.clone();
        tokio::spawn(async move { handle.prompt(prompt()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let error = timeout(LONG, call)
            .await
            .expect(script)
            .unwrap()
            .unwrap_err();
        assert!(
            error.is_closed() && error.to_string().contains(reason),
            "{script}: {error}"
        );
    }
    let ended = timeout(LONG, driver).await.expect(script).unwrap();
    assert!(ended.is_ok() || ended.is_err_and(|error| error.is_closed()));
    let late = handle.prompt(prompt()).await.unwrap_err();
    assert!(
        late.to_string().contains(reason),
        "{script}: a later call: {late}"
    );
}

#[tokio::test]
async fn an_agent_that_exits_says_with_what() {
    assert_ends("read line; exit 7", "exit status: 7").await;
    assert_ends("exit 3", "exit status: 3").await;
}

#[tokio::test]
async fn an_agent_that_is_killed_says_so() {
    assert_ends("read line; kill -9 $$", "signal: 9").await;
}

#[tokio::test]
async fn an_agent_that_dies_within_a_line_is_no_answer() {
    let script =
        r#"read line; printf '{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_'; exit 4"#;
    assert_ends(script, "exit status: 4").await;
}

#[tokio::test]
async fn an_agent_that_closes_its_output_and_reads_on_is_over() {
    assert_ends(
        "exec 1>&-; cat >/dev/null; exit 5",
        "closed its output and went on",
    )
    .await;
}

#[tokio::test]
async fn an_agent_that_closes_its_input_can_still_answer() {
    let _alone = ALONE.lock().await;
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"refusal"}}"#;
    // Writing fails from then on; what was written before that is still read.
    let (handle, driver) = start(&format!(
        "read line; exec 0<&-; echo '{answer}'; read never"
    ));
    let answered = timeout(LONG, handle.prompt(prompt()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answered.stop_reason, StopReason::Refusal);
    drop(handle);
    timeout(LONG, driver).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn an_agent_that_stops_reading_holds_the_sender_up_until_it_dies() {
    let _alone = ALONE.lock().await;
    let (handle, driver) = start("read line; kill -STOP $$; exit 1");
    let big = PromptRequest::new(
        "s",
        vec![ContentBlock::Text(TextContent::new("x".repeat(1 << 20)))],
    );
    let first = tokio::spawn({
        let (handle, big) = (handle.clone(), big.clone());
        async move { handle.prompt(big).await }
    });
    let more: Vec<_> = (0..10)
        .map(|_| {
            let (handle, big) = (handle.clone(), big.clone());
            tokio::spawn(async move { handle.prompt(big).await })
        })
        .collect();
    // None of them can end while nobody reads, and dropping them is no trouble.
    assert!(timeout(Duration::from_millis(200), first).await.is_err());
    for call in more {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    driver.abort();
    assert!(driver.await.unwrap_err().is_cancelled());
    assert!(handle.prompt(prompt()).await.unwrap_err().is_closed());
}

#[tokio::test]
async fn an_agent_that_writes_without_end_is_not_hoarded() {
    let _alone = ALONE.lock().await;
    let note = r#"{"jsonrpc":"2.0","method":"_noise"}"#;
    let (handle, driver) = start(&format!("yes '{note}'"));
    // Ours is still written and read among all that; the agent does not understand it.
    let call = tokio::spawn(async move { handle.prompt(prompt()).await });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!call.is_finished());
    driver.abort();
    assert!(
        timeout(LONG, call)
            .await
            .unwrap()
            .unwrap()
            .unwrap_err()
            .is_closed()
    );
}
