//! A client of raw messages, and the scripted agent's folder.

use std::path::PathBuf;
use std::time::Duration;

use acp_server::{Policies, Server};
use acp_server_host::{HostedAgent, HostedAgentBuilder, HostedLimits};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

/// The longest that a message may take: far more than any needs on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of a scripted agent.
pub struct Script(TempDir);

impl Script {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The agent, which finds out nothing of this process's environment.
    pub fn agent(&self) -> HostedAgentBuilder {
        self.agent_of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agent.sh"))
    }

    /// The agent of version 2.
    pub fn second_agent(&self) -> HostedAgentBuilder {
        self.agent_of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agent2.sh"))
    }

    fn agent_of(&self, script: &str) -> HostedAgentBuilder {
        HostedAgent::builder("sh")
            .arg(script)
            .env("FOLDER", self.0.path())
            .limits(limits())
    }

    pub async fn server(&self) -> (Server, HostedAgent) {
        let agent = self.agent().start().await.unwrap();
        (Server::new(agent.clone()), agent)
    }

    /// The process ids of all starts.
    pub fn starts(&self) -> Vec<String> {
        self.lines("starts")
    }

    /// The process ids of what has left the agent's group.
    pub fn children(&self) -> Vec<String> {
        self.lines("children")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until no process of the agent runs, nor one that has left its group.
    pub async fn all_gone(&self) {
        for pid in self.starts().iter().chain(&self.children()) {
            gone(pid).await;
        }
    }

    /// The messages that the agent has received, of a method.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let messages = text.lines().map(|line| serde_json::from_str(line).unwrap());
        messages
            .filter(|message: &Value| message["method"] == method)
            .collect()
    }
}

/// Returns whether a process runs. One that nobody has waited for does not.
pub fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    if stat.is_ok_and(|stat| stat.contains(") Z ")) {
        return false;
    }
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

/// Waits until a process does not run.
pub async fn gone(pid: &str) {
    while runs(pid) {
        // It is no child of this process, whose end would be an event.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Limits that let tests be quick.
pub fn limits() -> HostedLimits {
    let mut limits = HostedLimits::default();
    limits.restart_delay = Duration::from_millis(1);
    limits.max_restart_delay = Duration::from_millis(2);
    limits
}

/// A server whose turns need not wait long for an agent that ignores a cancellation.
pub fn impatient(agent: &HostedAgent) -> Server {
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_millis(50);
    Server::builder(agent.clone()).policies(policies).build()
}

/// A client, and its session if it has one.
pub struct Client {
    stream: BufReader<DuplexStream>,
    ids: u32,
    pub hello: Value,
    pub session: String,
    /// What came while an answer was awaited.
    pub before: Vec<Value>,
}

impl Client {
    pub async fn attach(server: &Server) -> Self {
        Self::offering(server, json!({})).await
    }

    pub async fn offering(server: &Server, capabilities: Value) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let mut served = server.attach(tokio::io::split(theirs));
        tokio::spawn(async move { served.closed().await });
        let mut client = Self {
            stream: BufReader::new(ours),
            ids: 0,
            hello: Value::Null,
            session: String::new(),
            before: Vec::new(),
        };
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        client.hello = client.call("initialize", params).await["result"].clone();
        client
    }

    /// A client with a new session, whose first updates it has read.
    pub async fn with_session(server: &Server) -> Self {
        let mut client = Self::attach(server).await;
        client.create().await;
        client.skip_greeting().await;
        client
    }

    pub async fn create(&mut self) -> Value {
        let params = json!({ "cwd": "/w", "mcpServers": [] });
        let answer = self.call("session/new", params).await;
        self.session = answer["result"]["sessionId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        answer
    }

    /// What the scripted agent sends of a new session.
    pub async fn skip_greeting(&mut self) {
        assert_eq!(self.update().await["content"]["text"], "before the answer");
        let commands = self.update().await;
        assert_eq!(commands["availableCommands"][0]["name"], "do", "{commands}");
    }

    pub async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.stream.write_all(line.as_bytes()).await.unwrap();
    }

    pub async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        let read = tokio::time::timeout(PATIENCE, read).await;
        assert_ne!(read.expect("nothing came").unwrap(), 0, "closed");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message, which must be an update.
    pub async fn update(&mut self) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], "session/update", "{message}");
        message["params"]["update"].clone()
    }

    /// Sends a request and returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u32 {
        self.ids += 1;
        let id = self.ids;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Waits for the answer to a request; what comes before it is in `before`.
    pub async fn answer(&mut self, id: u32) -> Value {
        self.before.clear();
        loop {
            let message = self.next().await;
            if message["id"] == id && message["method"].is_null() {
                return message;
            }
            self.before.push(message);
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    pub async fn prompt(&mut self, text: &str) -> Value {
        let id = self.begin_prompt(text).await;
        self.answer(id).await
    }

    pub async fn begin_prompt(&mut self, text: &str) -> u32 {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        self.begin("session/prompt", params).await
    }

    pub async fn cancel(&mut self) {
        let params = json!({ "sessionId": self.session });
        self.notify("session/cancel", params).await;
    }

    pub async fn load(&mut self) -> Value {
        let params = json!({ "sessionId": self.session, "cwd": "/w", "mcpServers": [] });
        self.call("session/load", params).await
    }

    pub async fn close(&mut self) {
        let params = json!({ "sessionId": self.session });
        self.call("session/close", params).await;
    }

    /// The texts of the messages before the last answer.
    pub fn said(&self) -> Vec<String> {
        let texts = self.before.iter().filter_map(|message| {
            let text = &message["params"]["update"]["content"]["text"];
            text.as_str().map(str::to_owned)
        });
        texts.collect()
    }
}
