//! What an agent's process holds in memory at most, whatever its client does.
//!
//! This very test binary, run again, is the agent. The kernel keeps the peak of its resident
//! memory in `/proc/PID/status`, which is read before and after; so this is for Linux alone.
#![cfg(target_os = "linux")]

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_sdk::{ConnectionBuilder, Error, HandlerError, HandlerResult, Json, v1::*};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{ALONE, LONG};

/// Set for the process that is the agent.
const CHILD: &str = "ACP_SDK_TEST_MEMORY";

const MIB: usize = 1 << 20;

/// The largest message that the agent accepts.
const MAX_MESSAGE: usize = 4 * MIB;

/// Offers much more than it can send, and handles notifications when it is told to.
struct Subject {
    /// Opened by the signal USR1, for everything else would go by way of the connection.
    gate: watch::Receiver<bool>,
    handled: AtomicUsize,
}

impl Agent for Subject {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Err(HandlerError::auth_required())
    }

    /// Offers 10 GiB: 1024 senders at once, with ten updates of 1 MiB each.
    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let text = ContentChunk::new(TextContent::new("x".repeat(MIB)));
        let update = SessionUpdate::AgentMessageChunk(text);
        let note = Arc::new(SessionNotification::new(req.session_id, update));
        let taken = Arc::new(AtomicUsize::new(0));
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..1024 {
            let (client, note, taken) = (cx.client().clone(), note.clone(), taken.clone());
            senders.spawn(async move {
                for _ in 0..10 {
                    let peer = client.peer();
                    peer.notify::<methods::SessionUpdate>(&note).await?;
                    taken.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Error>(())
            });
        }
        // There is one thread, so after these every sender has tried, and none gets further.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        eprintln!("taken {}", taken.load(Ordering::Relaxed));
        while senders.join_next().await.is_some() {}
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        let opened = self.gate.clone().wait_for(|open| *open).await.is_ok();
        self.handled
            .fetch_add(usize::from(opened), Ordering::Relaxed);
        Ok(())
    }

    async fn ext_request(
        &self,
        _: &AgentContext,
        method: &str,
        _: Option<Json>,
    ) -> HandlerResult<Json> {
        match method {
            "_handled" => Ok(Json::from(json!(self.handled.load(Ordering::Relaxed)))),
            _ => Err(HandlerError::method_not_found(method)),
        }
    }
}

#[test]
fn child_agent() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (open, gate) = watch::channel(false);
        let mut told = signal(SignalKind::user_defined1()).unwrap();
        tokio::spawn(async move {
            told.recv().await;
            let _ = open.send(true);
        });
        let subject = Subject {
            gate,
            handled: AtomicUsize::new(0),
        };
        let connection = ConnectionBuilder::new().max_message_bytes(MAX_MESSAGE);
        let _ = connection.serve_stdio(subject).await;
    });
    // The harness would print its verdict.
    std::process::exit(0);
}

/// An agent in a process of its own, and how much memory it held when it was at work.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    before: usize,
}

impl Process {
    async fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory::child_agent", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self {
            child,
            input,
            output,
            before: 0,
        };
        assert_eq!(process.handled().await, 0);
        process.before = process.peak();
        process
    }

    /// The largest size of the process so far, in bytes.
    fn peak(&self) -> usize {
        let id = self.child.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: usize = line.unwrap().trim_end_matches("kB").trim().parse().unwrap();
        kib << 10
    }

    /// How much the process has grown by since it was at work.
    #[track_caller]
    fn assert_grown_less_than(&self, bytes: usize) {
        let grown = self.peak() - self.before;
        let (grown, bound) = (grown >> 10, bytes >> 10);
        assert!(grown < bound, "{grown} KiB more, not less than {bound}");
    }

    /// Waits for the end, for a process that is gone by and by would close descriptors then.
    async fn end(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks how many notifications have been handled; what comes before the answer is skipped.
    async fn handled(&mut self) -> u64 {
        write(
            &mut self.input,
            b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"_handled\"}\n",
        )
        .await;
        loop {
            let message = self.next().await;
            if message["result"].is_u64() {
                return message["result"].as_u64().unwrap();
            }
        }
    }

    /// The next message; what the test harness prints before the agent begins is none.
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let read = timeout(LONG, self.output.read_line(&mut line));
            assert_ne!(
                read.await.expect("a message").unwrap(),
                0,
                "the agent ended"
            );
            if let Ok(message) = serde_json::from_str(&line) {
                return message;
            }
        }
    }

    /// Writes `lines` again and again; yields how many bytes the agent took until it read on
    /// no more.
    async fn press(&mut self, lines: &str, times: usize) -> usize {
        let mut taken = 0;
        for _ in 0..times {
            let mut rest = lines.as_bytes();
            while !rest.is_empty() {
                // That nothing happens is no event; a busy machine can only make this
                // begin too early, and then less has been taken.
                match timeout(Duration::from_millis(500), self.input.write(rest)).await {
                    Ok(written) => rest = &rest[written.unwrap()..],
                    Err(_) => return taken + lines.len() - rest.len(),
                }
            }
            taken += lines.len();
        }
        taken
    }
}

async fn write(input: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    timeout(LONG, input.write_all(bytes))
        .await
        .expect("the agent reads")
        .unwrap();
}

#[tokio::test]
async fn a_million_lines_of_garbage_take_no_room() {
    let _alone = ALONE.lock().await;
    let mut process = Process::start().await;
    let garbage = "{]\nnull\n[1]\n{\"id\":[]}\n\u{1}\n".repeat(2_000);
    for _ in 0..100 {
        write(&mut process.input, garbage.as_bytes()).await;
    }
    // Nobody has read the complaints so far, which come before this.
    assert_eq!(process.handled().await, 0);
    process.assert_grown_less_than(2 * MIB);
    process.end().await;
}

#[tokio::test]
async fn ten_gigabytes_for_a_reader_that_stops_stay_where_they_are() {
    let _alone = ALONE.lock().await;
    let mut process = Process::start().await;
    let params = json!({"sessionId": "s", "prompt": []});
    let prompt = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params});
    write(&mut process.input, format!("{prompt}\n").as_bytes()).await;
    let mut words = BufReader::new(process.child.stderr.take().unwrap()).lines();
    let word = timeout(LONG, words.next_line()).await.unwrap().unwrap();
    let taken: usize = word
        .unwrap()
        .strip_prefix("taken ")
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=3).contains(&taken), "{taken} MiB were taken");
    process.assert_grown_less_than(10 * MIB);
    for _ in 0..20 {
        assert_eq!(process.next().await["method"], "session/update");
    }
    process.assert_grown_less_than(10 * MIB);
    process.end().await;
}

#[tokio::test]
async fn a_hundred_thousand_notifications_before_a_stopped_handler_wait_outside() {
    let _alone = ALONE.lock().await;
    let mut process = Process::start().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    let lines = format!("{cancel}\n").repeat(1000);
    let taken = process.press(&lines, 100).await;
    assert!(taken < lines.len() * 100, "all {taken} bytes were taken");
    process.assert_grown_less_than(16 * MIB);
    let id = process.child.id().unwrap();
    let told = Command::new("kill")
        .args(["-USR1", &id.to_string()])
        .status()
        .await;
    assert!(told.unwrap().success());
    // It goes on where it stopped, and nothing is lost.
    let rest = lines.repeat(100).split_off(taken);
    write(&mut process.input, rest.as_bytes()).await;
    while process.handled().await < 100_000 {}
    process.assert_grown_less_than(16 * MIB);
    process.end().await;
}

#[tokio::test]
async fn requests_whose_answers_nobody_reads_wait_outside() {
    let _alone = ALONE.lock().await;
    let mut process = Process::start().await;
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt"}"#;
    let lines = format!("{request}\n").repeat(1000);
    let taken = process.press(&lines, 1000).await;
    assert!(taken < 4 * MIB, "{taken} bytes were taken");
    process.assert_grown_less_than(4 * MIB);
    for _ in 0..taken / (request.len() + 1) {
        assert_eq!(process.next().await["error"]["code"], -32602);
    }
    process.end().await;
}

#[tokio::test]
async fn a_line_without_an_end_is_not_kept() {
    let _alone = ALONE.lock().await;
    let mut process = Process::start().await;
    let chunk = vec![b'x'; MIB];
    for _ in 0..256 {
        write(&mut process.input, &chunk).await;
    }
    write(&mut process.input, b"\n").await;
    let message = "a message of 268435456 bytes exceeds the limit of 4194304";
    assert_eq!(process.next().await["error"]["message"], message);
    assert_eq!(process.handled().await, 0);
    process.assert_grown_less_than(MAX_MESSAGE + MIB);
    process.end().await;
}
