//! An agent of Chimera in memory, which answers each request with the lines that the test gives.

use std::time::Duration;

use acp_client::{Client, Session};
use acp_client_dialects::Chimera;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// Time for what is awaited: what is missing must not hang.
pub const LONGEST: Duration = Duration::from_secs(30);

pub async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(LONGEST, future).await;
    result.expect("it takes too long")
}

/// What the agent received: method and params.
pub type Received = mpsc::UnboundedReceiver<(String, Value)>;

/// Starts an agent and returns the streams that lead to it. It writes the messages of `answers[n]` when it has
/// received request `n`. Those without a method get the request's id.
pub fn agent(answers: Vec<Vec<Value>>) -> (impl Into<acp_sdk::Transport>, Received) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(theirs);
        let mut lines = BufReader::new(reader).lines();
        let mut answers = answers.into_iter();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            let method = request["method"].as_str().unwrap().to_owned();
            let _ = sender.send((method, request["params"].clone()));
            for mut message in answers.next().unwrap_or_default() {
                message["jsonrpc"] = "2.0".into();
                if message.get("method").is_none() {
                    message["id"] = request["id"].clone();
                }
                let line = format!("{message}\n");
                writer.write_all(line.as_bytes()).await.unwrap();
            }
        }
    });
    (tokio::io::split(ours), received)
}

pub fn result(result: Value) -> Value {
    json!({ "result": result })
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({ "method": method, "params": params })
}

/// Opens a session of a client without drain delay at an agent that answers `session/create` and then so.
pub async fn session(answers: Vec<Vec<Value>>) -> (Client, Session, Received) {
    let (client, mut received) = client(Chimera::new().drain_delay(Duration::ZERO), answers).await;
    let session = within(client.new_session("/")).await.unwrap();
    let (method, params) = received.recv().await.unwrap();
    assert_eq!(
        (method.as_str(), params),
        ("session/create", json!({ "working_dir": "/" }))
    );
    (client, session, received)
}

/// Connects a client to an agent that answers `session/create` and then so.
pub async fn client(chimera: Chimera, mut answers: Vec<Vec<Value>>) -> (Client, Received) {
    answers.insert(0, vec![result(json!({ "session_id": "s1" }))]);
    let (agent, received) = agent(answers);
    let connecting = Client::builder().connect(chimera.connect(agent));
    (within(connecting).await.unwrap(), received)
}
