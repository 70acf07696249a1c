//! A client that offers what a test wants it to and remembers everything it is asked and told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_reference_agent::reference_agent;
use acp_sdk::{HandlerResult, Json, Result, v1::*};
use acp_server::{Handler, Link, Server, ServerConnection};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How permission requests are answered.
#[derive(Clone, Copy, Default)]
pub enum Permission {
    #[default]
    First,
    Last,
    Cancelled,
    /// With an option that was not offered.
    Invented,
    Never,
    /// With the first option, once `go_on` has been notified.
    WhenNotified,
}

#[derive(Clone, Default)]
pub struct Editor {
    pub log: Arc<Mutex<Vec<Value>>>,
    pub logged: Arc<Notify>,
    pub permission: Permission,
    /// Commands in terminals run until they are killed or released.
    pub endless: bool,
    /// The user answers what is elicited.
    pub accepts: bool,
    /// Each terminal is created only after `go_on` has been told.
    pub slow_terminals: bool,
    /// A terminal is given back only after `go_on` has been told.
    pub slow_release: bool,
    pub go_on: Arc<Notify>,
}

impl Editor {
    fn note(&self, method: &str, params: Value) {
        let entry = json!({ "method": method, "params": params });
        self.log.lock().unwrap().push(entry);
        self.logged.notify_waiters();
    }

    /// Everything since the last time, as values with `method` and `params`.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// Everything since the last time, in a few words each.
    pub fn told(&self) -> Vec<String> {
        self.take().iter().map(brief).collect()
    }

    /// The texts of agent messages since the last time, as one.
    pub fn said(&self) -> String {
        let texts = self.take().into_iter().filter_map(|entry| {
            let update = &entry["params"]["update"];
            (update["sessionUpdate"] == "agent_message_chunk").then(|| {
                update["content"]["text"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
        });
        texts.collect()
    }

    /// Waits until something in the log is described by these words.
    pub async fn until(&self, words: &str) {
        let seen = async {
            loop {
                let mut logged = std::pin::pin!(self.logged.notified());
                logged.as_mut().enable();
                let log = self.log.lock().unwrap().clone();
                if log.iter().any(|entry| brief(entry).starts_with(words)) {
                    return;
                }
                logged.await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(10), seen)
            .await
            .is_err()
        {
            panic!("{words:?} never came; there was {:?}", self.told());
        }
    }
}

/// The kind of an update with its text or status, or the name of a method.
pub fn brief(entry: &Value) -> String {
    let update = &entry["params"]["update"];
    let Some(kind) = update["sessionUpdate"].as_str() else {
        return entry["method"].as_str().unwrap().to_owned();
    };
    let detail = update["content"]["text"]
        .as_str()
        .or(update["status"].as_str());
    match detail {
        Some(detail) => format!("{kind} {detail}"),
        None => kind.to_owned(),
    }
}

/// The numbers of the events that a client was sent as updates.
pub fn event_ids(log: &[Value]) -> Vec<u64> {
    let ids = log.iter();
    let ids = ids.filter_map(|entry| entry["params"]["_meta"]["acp-sdk"]["eventId"].as_u64());
    ids.collect()
}

impl Client for Editor {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        self.note("session/update", json!(note));
        Ok(())
    }

    async fn request_permission(
        &self,
        cx: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        self.note("session/request_permission", json!(req));
        let chosen = match self.permission {
            Permission::First => req.options.first().map(|option| option.option_id.clone()),
            Permission::Last => req.options.last().map(|option| option.option_id.clone()),
            Permission::WhenNotified => {
                self.go_on.notified().await;
                req.options.first().map(|option| option.option_id.clone())
            }
            Permission::Invented => Some("invented".into()),
            Permission::Cancelled => None,
            Permission::Never => {
                cx.cancelled().await;
                self.note("permission cancelled", json!({}));
                None
            }
        };
        let outcome = match chosen {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option))
            }
            None => RequestPermissionOutcome::Cancelled,
        };
        Ok(RequestPermissionResponse::new(outcome))
    }

    async fn read_text_file(
        &self,
        _: &ClientContext,
        req: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        self.note("fs/read_text_file", json!(req));
        if req.path == "/missing" {
            return Err(acp_sdk::HandlerError::resource_not_found("/missing"));
        }
        Ok(ReadTextFileResponse::new(format!(
            "content of {}",
            req.path
        )))
    }

    async fn write_text_file(
        &self,
        _: &ClientContext,
        req: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        self.note("fs/write_text_file", json!(req));
        Ok(WriteTextFileResponse::new())
    }

    async fn create_terminal(
        &self,
        _: &ClientContext,
        req: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        self.note("terminal/create", json!(req));
        if self.slow_terminals {
            self.go_on.notified().await;
        }
        Ok(CreateTerminalResponse::new("t1"))
    }

    async fn wait_for_terminal_exit(
        &self,
        cx: &ClientContext,
        req: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        self.note("terminal/wait_for_exit", json!(req));
        if self.endless {
            cx.cancelled().await;
        }
        Ok(WaitForTerminalExitResponse::new().with_exit_code(0u32))
    }

    async fn terminal_output(
        &self,
        _: &ClientContext,
        req: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        self.note("terminal/output", json!(req));
        Ok(TerminalOutputResponse::new("out\n", false))
    }

    async fn kill_terminal(
        &self,
        _: &ClientContext,
        req: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        self.note("terminal/kill", json!(req));
        Ok(KillTerminalResponse::new())
    }

    async fn release_terminal(
        &self,
        _: &ClientContext,
        req: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        self.note("terminal/release", json!(req));
        if self.slow_release {
            self.go_on.notified().await;
        }
        Ok(ReleaseTerminalResponse::new())
    }

    async fn create_elicitation(
        &self,
        _: &ClientContext,
        req: CreateElicitationRequest,
    ) -> HandlerResult<CreateElicitationResponse> {
        self.note("elicitation/create", json!(req));
        let answer = match (self.accepts, &req.mode) {
            (false, _) => json!({ "action": "decline" }),
            (true, ElicitationMode::Form(_)) => {
                json!({ "action": "accept", "content": { "name": "Ada" } })
            }
            (true, _) => json!({ "action": "accept" }),
        };
        Ok(serde_json::from_value(answer).unwrap())
    }

    async fn ext_notification(
        &self,
        _: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        self.note(method, json!(params));
        Ok(())
    }

    async fn complete_elicitation(
        &self,
        _: &ClientContext,
        note: CompleteElicitationNotification,
    ) -> HandlerResult<()> {
        self.note("elicitation/complete", json!(note));
        Ok(())
    }
}

/// Everything a client can offer.
pub fn everything() -> ClientCapabilities {
    serde_json::from_value(json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": true,
        "elicitation": { "form": {}, "url": {} },
        "session": { "compaction": {}, "notices": {}, "configOptions": { "boolean": {} } },
    }))
    .unwrap()
}

/// A handler behind the server, for one client on a pipe.
pub fn agent(handler: impl Handler) -> ServerConnection {
    Server::new(handler).connection(Link::Stdio)
}

/// A connection to a reference agent that has not been initialized.
pub fn connect(editor: &Editor) -> AgentHandle {
    connect_to(reference_agent(), editor)
}

/// A connection to an agent that has not been initialized.
pub fn connect_to(agent: impl Agent, editor: &Editor) -> AgentHandle {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(agent, (reader, writer)));
    let (reader, writer) = tokio::io::split(ours);
    let driver = acp_sdk::connect(editor.clone(), (reader, writer));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    agent
}

/// A client with a session, to talk to the agent in.
pub struct Desk {
    pub agent: AgentHandle,
    pub editor: Editor,
    pub session: SessionId,
}

impl Desk {
    pub async fn new() -> Self {
        Self::with(Editor::default(), everything()).await
    }

    pub async fn with(editor: Editor, offered: ClientCapabilities) -> Self {
        Self::at(reference_agent(), editor, offered).await
    }

    /// Over a link like that of stdio.
    pub async fn of(server: &Server) -> Self {
        let agent = server.connection(Link::Stdio);
        Self::at(agent, Editor::default(), everything()).await
    }

    pub async fn at(agent: impl Agent, editor: Editor, offered: ClientCapabilities) -> Self {
        let agent = connect_to(agent, &editor);
        let hello = InitializeRequest::new(ProtocolVersion::V1).with_client_capabilities(offered);
        agent.initialize(hello).await.unwrap();
        let session = new_session(&agent).await;
        Self {
            agent,
            editor,
            session,
        }
    }

    pub async fn prompt(&self, said: &str) -> Result<StopReason> {
        let request = PromptRequest::new(self.session.clone(), text(said));
        self.agent
            .prompt(request)
            .await
            .map(|answer| answer.stop_reason)
    }

    /// A prompt in the background.
    pub fn start(&self, said: &str) -> tokio::task::JoinHandle<Result<StopReason>> {
        let (agent, request) = (
            self.agent.clone(),
            PromptRequest::new(self.session.clone(), text(said)),
        );
        tokio::spawn(async move { agent.prompt(request).await.map(|answer| answer.stop_reason) })
    }

    pub async fn cancel(&self) {
        let note = CancelNotification::new(self.session.clone());
        self.agent.cancel(note).await.unwrap();
    }

    pub async fn load(&self) -> Result<LoadSessionResponse> {
        let request = LoadSessionRequest::new(self.session.clone(), "/w", vec![]);
        self.agent.load_session(request).await
    }
}

pub async fn new_session(agent: &AgentHandle) -> SessionId {
    let request = NewSessionRequest::new("/w", vec![]);
    agent.new_session(request).await.unwrap().session_id
}

pub fn text(said: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(said))]
}

/// Waits, but not for ever.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(Duration::from_secs(30), future).await;
    waited.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
}

/// Lets everything else run that can.
pub async fn others_run() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}
