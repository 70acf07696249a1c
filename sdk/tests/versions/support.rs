//! A peer that speaks raw bytes, and small agents and clients of each version.

use std::sync::{Arc, Mutex};

use acp_sdk::{
    ConnectionBuilder, HandlerError, HandlerResult, IntoAgent, IntoClient, Result, v1, v2,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

/// The other end of a connection, line by line.
pub struct Raw {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Raw {
    pub async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub async fn write(&mut self, text: String) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends several messages in one piece.
    pub async fn send_all(&mut self, messages: &[Value]) {
        let lines: String = messages
            .iter()
            .map(|message| format!("{message}\n"))
            .collect();
        self.writer.write_all(lines.as_bytes()).await.unwrap();
    }

    /// The next message; none at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub async fn expect(&mut self) -> Value {
        self.next().await.expect("the stream goes on")
    }

    /// Sends a request and gives the answer, which must be the next message.
    pub async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request).await;
        let answer = self.expect().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

/// An agent with a raw peer in the client's place.
pub fn agent<V>(agent: impl IntoAgent<V>) -> (Raw, JoinHandle<Result<()>>) {
    agent_with(ConnectionBuilder::new(), agent)
}

/// An agent on a connection with settings or layers.
pub fn agent_with<V>(
    connection: ConnectionBuilder,
    agent: impl IntoAgent<V>,
) -> (Raw, JoinHandle<Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = connection.agent(agent, (reader, writer));
    (raw(theirs), tokio::spawn(driver))
}

/// A client with a raw peer in the agent's place.
pub fn client<V, C: IntoClient<V>>(client: C) -> (C::Agent, Raw, JoinHandle<Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let driver = acp_sdk::connect(client, (reader, writer));
    let handle = driver.handle().clone();
    (handle, raw(theirs), tokio::spawn(driver))
}

fn raw(stream: DuplexStream) -> Raw {
    let (reader, writer) = tokio::io::split(stream);
    Raw {
        reader: BufReader::new(reader),
        writer,
    }
}

/// What was called, by whom, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// An agent of version 1 that names its sessions after itself.
#[derive(Clone, Default)]
pub struct Old(pub Log);

impl v1::Agent for Old {
    async fn initialize(
        &self,
        _: &v1::AgentContext,
        req: v1::InitializeRequest,
    ) -> HandlerResult<v1::InitializeResponse> {
        let client = req
            .client_info
            .map_or("nobody".to_owned(), |info| info.name);
        self.0
            .note(format!("v1 initialize {} {client}", req.protocol_version));
        Ok(v1::InitializeResponse::new(v1::ProtocolVersion::V1))
    }

    async fn new_session(
        &self,
        _: &v1::AgentContext,
        _: v1::NewSessionRequest,
    ) -> HandlerResult<v1::NewSessionResponse> {
        Ok(v1::NewSessionResponse::new("old"))
    }

    async fn prompt(
        &self,
        cx: &v1::AgentContext,
        req: v1::PromptRequest,
    ) -> HandlerResult<v1::PromptResponse> {
        for block in req.prompt {
            let update = v1::SessionUpdate::AgentMessageChunk(v1::ContentChunk::new(block));
            let note = v1::SessionNotification::new(req.session_id.clone(), update);
            cx.client().session_update(note).await?;
        }
        Ok(v1::PromptResponse::new(v1::StopReason::EndTurn))
    }

    async fn cancel(&self, _: &v1::AgentContext, _: v1::CancelNotification) -> HandlerResult<()> {
        self.0.note("v1 cancel");
        Ok(())
    }
}

/// An agent of version 2 that names its sessions after itself.
#[derive(Clone, Default)]
pub struct New(pub Log);

impl v2::Agent for New {
    async fn initialize(
        &self,
        _: &v2::AgentContext,
        req: v2::InitializeRequest,
    ) -> HandlerResult<v2::InitializeResponse> {
        self.0.note(format!(
            "v2 initialize {} {}",
            req.protocol_version, req.info.name
        ));
        if req.info.name == "forbidden" {
            return Err(HandlerError::auth_required());
        }
        let info = v2::Implementation::new("new", "1");
        // Whatever the handler says, the connection speaks version 2.
        Ok(v2::InitializeResponse::new(req.protocol_version, info))
    }

    async fn new_session(
        &self,
        _: &v2::AgentContext,
        _: v2::NewSessionRequest,
    ) -> HandlerResult<v2::NewSessionResponse> {
        Ok(v2::NewSessionResponse::new("new"))
    }

    async fn prompt(
        &self,
        cx: &v2::AgentContext,
        req: v2::PromptRequest,
    ) -> HandlerResult<v2::PromptResponse> {
        let message = v2::AgentMessage::new("m1").with_content(req.prompt);
        let update = v2::SessionUpdate::AgentMessage(message);
        let note = v2::UpdateSessionNotification::new(req.session_id, update);
        cx.client().session_update(note).await?;
        Ok(v2::PromptResponse::new("m0"))
    }

    async fn cancel_session(
        &self,
        _: &v2::AgentContext,
        _: v2::CancelSessionNotification,
    ) -> HandlerResult<()> {
        self.0.note("v2 cancel");
        Ok(())
    }
}

/// A client of version 1 that notes updates.
#[derive(Clone, Default)]
pub struct OldClient(pub Log);

impl v1::Client for OldClient {
    async fn request_permission(
        &self,
        _: &v1::ClientContext,
        _: v1::RequestPermissionRequest,
    ) -> HandlerResult<v1::RequestPermissionResponse> {
        let outcome = v1::RequestPermissionOutcome::Cancelled;
        Ok(v1::RequestPermissionResponse::new(outcome))
    }

    async fn session_update(
        &self,
        _: &v1::ClientContext,
        note: v1::SessionNotification,
    ) -> HandlerResult<()> {
        self.0.note(format!("v1 update of {}", note.session_id));
        Ok(())
    }
}

/// A client of version 2 that notes updates.
#[derive(Clone, Default)]
pub struct NewClient(pub Log);

impl v2::Client for NewClient {
    async fn request_permission(
        &self,
        _: &v2::ClientContext,
        _: v2::RequestPermissionRequest,
    ) -> HandlerResult<v2::RequestPermissionResponse> {
        let outcome = v2::CancelledPermissionOutcome::new();
        Ok(v2::RequestPermissionResponse::new(outcome))
    }

    async fn session_update(
        &self,
        _: &v2::ClientContext,
        note: v2::UpdateSessionNotification,
    ) -> HandlerResult<()> {
        self.0.note(format!("v2 update of {}", note.session_id));
        Ok(())
    }
}

/// What a client of version 1 asks for.
pub fn ask_v1() -> v1::InitializeRequest {
    v1::InitializeRequest::new(v1::ProtocolVersion::V1)
        .with_client_info(v1::Implementation::new("editor", "1"))
}

/// What a client of version 2 asks for.
pub fn ask_v2() -> v2::InitializeRequest {
    v2::InitializeRequest::new(
        v2::ProtocolVersion::V2,
        v2::Implementation::new("editor", "1"),
    )
}
