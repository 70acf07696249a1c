//! An agent in memory that acts by the first word of a prompt, and a raw agent.

use std::sync::Arc;
use std::time::Duration;

use acp_client::{Client, ClientBuilder};
use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Json};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf,
    WriteHalf,
};
use tokio::sync::Notify;

/// A timeout against hanging tests; passing tests never reach it.
pub const GUARD: Duration = Duration::from_secs(30);

/// Fails a test that would hang.
pub async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(GUARD, future).await;
    result.expect("it takes too long")
}

#[derive(Clone, Default)]
pub struct TestAgent {
    /// Notified when a prompt `hang` or `stubborn` has begun.
    pub hanging: Arc<Notify>,
    /// Notified when the session was cancelled.
    pub cancelled: Arc<Notify>,
    /// Notified when a prompt `hang` was cancelled and has ended.
    pub stopped: Arc<Notify>,
    /// Notified when a session was closed.
    pub closed: Arc<Notify>,
    /// The answers to permission requests, as JSON.
    pub answered: Arc<std::sync::Mutex<Vec<Value>>>,
}

/// Connects a client to an agent in memory.
pub async fn connect(agent: TestAgent, builder: ClientBuilder) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(agent, (reader, writer)));
    let (reader, writer) = tokio::io::split(ours);
    within(builder.connect((reader, writer))).await.unwrap()
}

pub fn said(text: &str) -> SessionUpdate {
    let block = ContentBlock::Text(TextContent::new(text));
    SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
}

impl TestAgent {
    async fn update(
        &self,
        cx: &AgentContext,
        id: &SessionId,
        update: SessionUpdate,
    ) -> HandlerResult<()> {
        let note = SessionNotification::new(id.clone(), update);
        Ok(cx.client().session_update(note).await?)
    }

    async fn work(&self, cx: &AgentContext, id: &SessionId) -> HandlerResult<()> {
        let thought = ContentBlock::Text(TextContent::new("Hm."));
        let entry = PlanEntry::new("Read", PlanEntryPriority::High, PlanEntryStatus::Pending);
        let done = ToolCallUpdate::new("call").with_status(ToolCallStatus::Completed);
        let updates = [
            SessionUpdate::AgentThoughtChunk(ContentChunk::new(thought)),
            said("One"),
            said("."),
            SessionUpdate::Plan(Plan::new(vec![entry])),
            SessionUpdate::ToolCall(ToolCall::new("call", "Read it").with_kind(ToolKind::Read)),
            SessionUpdate::ToolCallUpdate(done),
            SessionUpdate::UsageUpdate(
                UsageUpdate::new(7_u64, 10_u64).with_cost(Cost::new(0.5, "EUR")),
            ),
            said("Two."),
        ];
        for update in updates {
            self.update(cx, id, update).await?;
        }
        Ok(())
    }

    /// Announces a tool call of a kind, and requests permission with its id and no locations.
    async fn ask(&self, cx: &AgentContext, id: &SessionId, kind: &str) -> HandlerResult<()> {
        let input = Json::from(json!({"text": "new"}));
        let call = ToolCall::new("call", "Do it")
            .with_kind(ToolKind::from(kind))
            .with_locations(vec![ToolCallLocation::new("/w/a")])
            .with_raw_input(input);
        self.update(cx, id, SessionUpdate::ToolCall(call)).await?;
        let options = vec![
            PermissionOption::new("1", "Never", PermissionOptionKind::RejectAlways),
            PermissionOption::new("2", "Always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("3", "No", PermissionOptionKind::RejectOnce),
            PermissionOption::new("4", "Yes", PermissionOptionKind::AllowOnce),
        ];
        let call = ToolCallUpdate::new("call").with_locations(Vec::new());
        let request = RequestPermissionRequest::new(id.clone(), call, options);
        self.hanging.notify_one();
        let answer = cx.client().request_permission(request).await?;
        let outcome = serde_json::to_value(&answer.outcome).unwrap();
        self.answered.lock().unwrap().push(outcome);
        Ok(())
    }
}

impl Agent for TestAgent {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> HandlerResult<InitializeResponse> {
        let session = SessionCapabilities::new()
            .with_list(SessionListCapabilities::new())
            .with_close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .with_load_session(true)
            .with_session_capabilities(session);
        let method = AuthMethodAgent::new("key", "A key");
        Ok(InitializeResponse::new(ProtocolVersion::V1)
            .with_agent_capabilities(capabilities)
            .with_auth_methods(vec![AuthMethod::Agent(method)]))
    }

    async fn new_session(
        &self,
        cx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let id = SessionId::from(req.cwd.as_str());
        // Before the response, as some agents do: the client does not know the id yet.
        self.update(cx, &id, said("early")).await?;
        Ok(NewSessionResponse::new(id))
    }

    async fn load_session(
        &self,
        cx: &AgentContext,
        req: LoadSessionRequest,
    ) -> HandlerResult<LoadSessionResponse> {
        if req.session_id.as_str() != "known" {
            return Err(HandlerError::resource_not_found(req.session_id));
        }
        for word in ["first", "second"] {
            self.update(cx, &req.session_id, said(word)).await?;
        }
        Ok(LoadSessionResponse::new())
    }

    /// Returns three pages of one session each, then repeats the cursor.
    async fn list_sessions(
        &self,
        _: &AgentContext,
        req: ListSessionsRequest,
    ) -> HandlerResult<ListSessionsResponse> {
        let page = match req.cursor.as_deref() {
            None => "1",
            Some("1") => "2",
            Some(_) => "3",
        };
        let session = SessionInfo::new(page, "/");
        Ok(ListSessionsResponse::new(vec![session]).with_next_cursor(page))
    }

    async fn close_session(
        &self,
        _: &AgentContext,
        _: CloseSessionRequest,
    ) -> HandlerResult<CloseSessionResponse> {
        self.closed.notify_one();
        Ok(CloseSessionResponse::new())
    }

    async fn authenticate(
        &self,
        _: &AgentContext,
        _: AuthenticateRequest,
    ) -> HandlerResult<AuthenticateResponse> {
        Err(HandlerError::auth_required())
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let id = &req.session_id;
        let text = match req.prompt.first() {
            Some(ContentBlock::Text(text)) => text.text.clone(),
            _ => String::new(),
        };
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "work" => self.work(cx, id).await?,
            "ask" => self.ask(cx, id, rest).await?,
            "fail" => return Err(HandlerError::internal("as you wish")),
            "locked" => return Err(HandlerError::auth_required()),
            "hang" => {
                self.update(cx, id, said("working")).await?;
                self.hanging.notify_one();
                self.cancelled.notified().await;
                self.update(cx, id, said("stopped")).await?;
                self.stopped.notify_one();
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
            "stubborn" => {
                self.hanging.notify_one();
                std::future::pending::<()>().await;
            }
            "flood" => loop {
                self.update(cx, id, said(&"x".repeat(10_000))).await?;
                if cx.is_cancelled() {
                    break;
                }
            },
            _ => self.update(cx, id, said(&text)).await?,
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        self.cancelled.notify_one();
        Ok(())
    }
}

/// An agent that sends the bytes that a test specifies.
pub struct Raw {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Raw {
    /// A client that believes it has initialized this agent.
    pub async fn connect(builder: ClientBuilder) -> (Client, Self) {
        Self::connect_saying(builder, json!({"protocolVersion": 1})).await
    }

    /// The same, with this answer to `initialize`.
    pub async fn connect_saying(builder: ClientBuilder, hello: Value) -> (Client, Self) {
        let (client, raw, _) = Self::connect_asking(builder, hello).await;
        (client, raw)
    }

    /// The same, with the params of `initialize`.
    pub async fn connect_asking(builder: ClientBuilder, hello: Value) -> (Client, Self, Value) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let mut raw = Self {
            reader: BufReader::new(reader),
            writer,
        };
        let (reader, writer) = tokio::io::split(ours);
        let (client, params) = within(async {
            tokio::join!(
                builder.connect((reader, writer)),
                raw.params("initialize", hello)
            )
        })
        .await;
        (client.unwrap(), raw, params)
    }

    pub async fn next(&mut self) -> Value {
        let mut line = String::new();
        within(self.reader.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).expect("a message of the client")
    }

    /// Returns whether the client closes its side without another message.
    pub async fn is_over(&mut self) -> bool {
        let mut line = String::new();
        within(self.reader.read_line(&mut line)).await.unwrap() == 0
    }

    /// Returns all messages up to the end of the client's side.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        within(self.reader.read_to_string(&mut rest)).await.unwrap();
        rest
    }

    pub async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    pub async fn line(&mut self, line: &str) {
        let line = format!("{line}\n");
        within(self.writer.write_all(line.as_bytes()))
            .await
            .unwrap();
    }

    /// Awaits a call of `method` and answers it.
    pub async fn answer(&mut self, method: &str, result: Value) {
        self.params(method, result).await;
    }

    /// The same, with the params that it came with.
    pub async fn params(&mut self, method: &str, result: Value) -> Value {
        let mut request = self.next().await;
        assert_eq!(request["method"], method);
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
        request["params"].take()
    }

    pub async fn say(&mut self, session: &str, text: &str) {
        let update = serde_json::to_value(said(text)).unwrap();
        let params = json!({"sessionId": session, "update": update});
        self.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            .await;
    }
}
