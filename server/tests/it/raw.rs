//! A client of one line after the other, which reads nothing ahead.

use acp_sdk::ConnectionBuilder;
use acp_sdk::v1::Agent;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;

pub struct Raw(BufReader<DuplexStream>, Option<JoinHandle<()>>);

impl Raw {
    pub fn serve(agent: impl Agent) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 12);
        let connection = ConnectionBuilder::new();
        let driver = connection.agent(agent, tokio::io::split(theirs));
        tokio::spawn(driver);
        Self(BufReader::new(ours), None)
    }

    /// Attaches to a server.
    pub fn attach(server: &acp_server::Server) -> Self {
        Self::attach_with(server, ConnectionBuilder::new())
    }

    /// The same, with layers of the connection.
    pub fn attach_with(server: &acp_server::Server, connection: ConnectionBuilder) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut served = server.attach_with(connection, tokio::io::split(theirs));
        let served = tokio::spawn(async move { drop(served.closed().await) });
        Self(BufReader::new(ours), Some(served))
    }

    /// Loses the connection, and waits until a server has noticed it.
    pub async fn lose(self) {
        drop(self.0);
        if let Some(served) = self.1 {
            served.await.unwrap();
        }
    }

    /// Initializes the agent, and yields the id of a new session.
    pub async fn open_session(&mut self) -> Value {
        self.call(0, "initialize", json!({ "protocolVersion": 1 }))
            .await;
        let (created, _) = self
            .call(1, "session/new", json!({ "cwd": "/", "mcpServers": [] }))
            .await;
        created["result"]["sessionId"].clone()
    }

    pub async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.0.write_all(line.as_bytes()).await.unwrap();
    }

    pub async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request, and how many messages came before it.
    pub async fn answer(&mut self, id: u32) -> (Value, usize) {
        let mut before = 0;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return (message, before);
            }
            before += 1;
        }
    }

    pub async fn call(&mut self, id: u32, method: &str, params: Value) -> (Value, usize) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request).await;
        self.answer(id).await
    }
}
