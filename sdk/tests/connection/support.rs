//! A scripted peer that speaks raw bytes, and a small agent and client.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use acp_sdk::runtime::Json;
use acp_sdk::{HandlerError, HandlerResult, Result, v1::*};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The other end of a connection, byte by byte.
pub struct Raw {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Raw {
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.writer.write_all(bytes.as_ref()).await.unwrap();
    }

    pub async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n")).await;
    }

    pub async fn next(&mut self) -> Option<Value> {
        let line = self.line().await;
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub async fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        line
    }

    pub async fn expect(&mut self) -> Value {
        self.next().await.expect("the stream goes on")
    }

    /// Sends a ping and checks that the next message is its answer: the connection lives,
    /// and nothing else was sent before it.
    pub async fn assert_alive(&mut self) {
        self.send(json!({"jsonrpc": "2.0", "id": "alive", "method": "_alive"}))
            .await;
        assert_eq!(
            self.expect().await,
            json!({"jsonrpc": "2.0", "id": "alive", "result": "yes"})
        );
    }

    pub async fn close_writing(&mut self) {
        self.writer.shutdown().await.unwrap();
    }
}

/// An agent with a raw peer in the client's place.
pub fn agent(agent: TestAgent) -> (Raw, JoinHandle<Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let task = tokio::spawn(acp_sdk::serve(agent, (reader, writer)));
    (raw(theirs), task)
}

/// A client with a raw peer in the agent's place.
pub fn client(client: impl Client) -> (AgentHandle, Raw, JoinHandle<Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = acp_sdk::connect(client, (reader, writer));
    let handle = driver.handle().clone();
    (handle, raw(theirs), tokio::spawn(driver))
}

/// A real agent and a real client; both drivers run until dropped.
pub fn pair(agent: TestAgent, client: impl Client) -> (AgentHandle, [JoinHandle<Result<()>>; 2]) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let agent = tokio::spawn(acp_sdk::serve(agent, (reader, writer)));
    let (reader, writer) = tokio::io::split(ours);
    let driver = acp_sdk::connect(client, (reader, writer));
    let handle = driver.handle().clone();
    (handle, [agent, tokio::spawn(driver)])
}

pub fn raw(stream: DuplexStream) -> Raw {
    let (reader, writer) = tokio::io::split(stream);
    Raw {
        reader: BufReader::new(reader),
        writer,
    }
}

/// Prompts: `hang`, `panic`, `nest N` (calls the client, which calls back), `flood`.
#[derive(Clone, Default)]
pub struct TestAgent {
    pub hanging: Arc<Notify>,
    pub sent: Arc<Mutex<u64>>,
}

impl Agent for TestAgent {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s1"))
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let text = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.clone(),
            _ => String::new(),
        };
        match text.as_str() {
            "panic" => panic!("a fault in the agent"),
            "log" => {
                tracing::info!(target: "test", "the agent says something");
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
            "hang" => {
                self.hanging.notify_one();
                cx.cancelled().await;
                Ok(PromptResponse::new(StopReason::Cancelled))
            }
            "deaf" => std::future::pending().await,
            "flood" => loop {
                cx.client()
                    .session_update(update(&req.session_id, &"x".repeat(1000)))
                    .await?;
                *self.sent.lock().unwrap() += 1;
            },
            _ => {
                cx.client()
                    .session_update(update(&req.session_id, &text))
                    .await?;
                Ok(PromptResponse::new(StopReason::EndTurn))
            }
        }
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }

    async fn ext_request(
        &self,
        cx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        match method {
            "_alive" => Ok(Json::from(json!("yes"))),
            "_down" => Ok(descend(cx.client().peer(), params).await?),
            _ => Err(HandlerError::method_not_found(method)),
        }
    }
}

/// Calls the other side with a number one less, until it is zero.
pub async fn descend(peer: &acp_sdk::runtime::Peer, params: Option<Json>) -> Result<Json> {
    let depth = params
        .and_then(|p| p.to_value()?.get("depth")?.as_u64())
        .unwrap_or(0);
    if depth == 0 {
        return Ok(Json::from(json!("bottom")));
    }
    peer.call_ext("_down", Some(&Json::from(json!({"depth": depth - 1}))))
        .await
}

pub fn update(session: &SessionId, text: &str) -> SessionNotification {
    let block = ContentBlock::Text(TextContent::new(text));
    let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block));
    SessionNotification::new(session.clone(), update)
}

pub fn prompt(session: &str, text: &str) -> PromptRequest {
    PromptRequest::new(session, vec![ContentBlock::Text(TextContent::new(text))])
}

/// A prompt in session `s` as a line of the wire has it.
pub fn raw_prompt(id: impl Into<Value>, text: &str) -> Value {
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": text}]});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "session/prompt", "params": params})
}

/// Notes the texts it receives; a text `slow` is handled only when `gate` opens, and one that
/// says `call` when the agent has answered.
#[derive(Clone, Default)]
pub struct TestClient {
    pub texts: Arc<Mutex<Vec<String>>>,
    pub gate: Arc<Notify>,
    pub reached_gate: Arc<Notify>,
}

impl TestClient {
    pub fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap().clone()
    }
}

impl Client for TestClient {
    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        Ok(RequestPermissionResponse::new(
            RequestPermissionOutcome::Cancelled,
        ))
    }

    async fn session_update(
        &self,
        cx: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        let SessionUpdate::AgentMessageChunk(chunk) = note.update else {
            return Ok(());
        };
        let ContentBlock::Text(text) = chunk.content else {
            return Ok(());
        };
        match text.text.as_str() {
            "slow" => {
                self.reached_gate.notify_one();
                self.gate.notified().await;
            }
            "panic" => panic!("a fault in the client"),
            "call" | "call, then slow" => {
                let params = Json::from(json!({"depth": 5}));
                descend(cx.agent().peer(), Some(params)).await?;
                if text.text == "call, then slow" {
                    self.reached_gate.notify_one();
                    self.gate.notified().await;
                }
            }
            _ => {}
        }
        self.texts.lock().unwrap().push(text.text);
        Ok(())
    }

    async fn ext_request(
        &self,
        cx: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        match method {
            "_alive" => Ok(Json::from(json!("yes"))),
            "_down" => Ok(descend(cx.agent().peer(), params).await?),
            _ => Err(HandlerError::method_not_found(method)),
        }
    }
}

pub fn chunk(session: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": session,
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    }})
}

/// Far above what anything here takes, for a test that hangs should say so.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future).await.expect("it hangs")
}

/// Lets other tasks run until `condition` holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = std::time::Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < limit, "timed out: {what}");
        tokio::task::yield_now().await;
    }
}

/// Polls once: whether the future has to wait.
pub async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    let poll = |cx: &mut Context<'_>| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending());
    std::future::poll_fn(poll).await
}

/// Ends a connection with the test.
pub struct AbortOnDrop(pub JoinHandle<Result<()>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a test on a thread of its own: a loop that never gives others a turn would stop the
/// clock of the test, too.
pub fn on_its_own_thread<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test());
        let _ = done.send(());
    });
    let ended = ended.recv_timeout(Duration::from_secs(30));
    ended.expect("it hangs, or it failed as said above");
}

/// Runs a test body to its end on a runtime with one thread (`workers` 0) or several.
pub fn run_on(workers: usize, test: impl Future<Output = ()>) {
    let runtime = match workers {
        0 => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
        workers => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build(),
    };
    // A fault shows as a failure and not as a hang.
    runtime.unwrap().block_on(within(test));
}

/// Makes three tests of each async function: one thread, two workers, four workers.
#[macro_export]
macro_rules! on_every_runtime {
    ($($test:ident),* $(,)?) => {
        $(mod $test {
            #[test]
            fn one_thread() {
                $crate::support::run_on(0, super::$test());
            }
            #[test]
            fn two_workers() {
                $crate::support::run_on(2, super::$test());
            }
            #[test]
            fn four_workers() {
                $crate::support::run_on(4, super::$test());
            }
        })*
    };
}
