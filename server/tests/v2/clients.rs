//! Clients of both versions that keep what they are sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::{HandlerResult, Json, v1, v2};
use acp_server::Server;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longer than anything takes; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client was sent.
#[derive(Clone)]
pub struct View {
    entries: Arc<Mutex<Vec<Entry>>>,
    changed: watch::Sender<()>,
}

/// An update, or a request of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The session, which may be a child.
    pub session: String,
    /// The number of its event.
    pub number: Option<u64>,
    /// The id of the prompt that it belongs to.
    pub prompt: Option<String>,
    /// The update; of a request, its params.
    pub body: Value,
}

impl View {
    fn new() -> Self {
        Self {
            entries: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    fn add(&self, session: &str, meta: Option<&acp_sdk::Meta>, body: &impl serde::Serialize) {
        let ours: Option<Value> = meta.and_then(|meta| meta.get("acp-sdk"));
        let ours = ours.unwrap_or_default();
        let entry = Entry {
            session: session.to_owned(),
            number: ours["eventId"].as_u64(),
            prompt: ours["promptId"].as_str().map(str::to_owned),
            body: serde_json::to_value(body).unwrap(),
        };
        self.entries.lock().unwrap().push(entry);
        self.changed.send_replace(());
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    /// Returns the updates of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        let entries = self.entries().into_iter().map(|entry| entry.body);
        entries
            .filter(|body| body["sessionUpdate"] == kind)
            .collect()
    }

    /// Returns the kinds of updates, and the states among them.
    pub fn kinds(&self) -> Vec<String> {
        let kind = |entry: &Entry| {
            let body = &entry.body;
            let kind = body["state"].as_str().or(body["sessionUpdate"].as_str());
            kind.unwrap_or("request").to_owned()
        };
        self.entries().iter().map(kind).collect()
    }

    pub fn clear(&self) {
        self.entries.lock().unwrap().clear();
    }

    /// Waits until an entry is as `wanted`, and returns it.
    pub async fn wait_for(&self, wanted: impl Fn(&Value) -> bool) -> Entry {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                let entries = self.entries();
                if let Some(found) = entries.into_iter().find(|entry| wanted(&entry.body)) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        let found = tokio::time::timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| panic!("not sent; {:#?}", self.entries()))
    }

    /// Waits for a state of the session.
    pub async fn state(&self, state: &str) -> Value {
        self.wait_for(|body| body["state"] == state).await.body
    }
}

/// How a client answers questions.
#[derive(Clone, Copy, PartialEq)]
pub enum Answers {
    /// With the first option, or by accepting.
    Yes,
    Never,
}

#[derive(Clone)]
struct Watcher {
    view: View,
    answers: Answers,
}

impl Watcher {
    async fn may_answer(&self) {
        if self.answers == Answers::Never {
            std::future::pending::<()>().await;
        }
    }
}

impl v1::Client for Watcher {
    async fn session_update(
        &self,
        _: &v1::ClientContext,
        note: v1::SessionNotification,
    ) -> HandlerResult<()> {
        self.view
            .add(note.session_id.as_str(), note.meta.as_ref(), &note.update);
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &v1::ClientContext,
        req: v1::RequestPermissionRequest,
    ) -> HandlerResult<v1::RequestPermissionResponse> {
        self.view.add(req.session_id.as_str(), None, &req);
        self.may_answer().await;
        let chosen = v1::SelectedPermissionOutcome::new(&req.options[0].option_id);
        Ok(v1::RequestPermissionResponse::new(chosen))
    }
}

impl v2::Client for Watcher {
    async fn session_update(
        &self,
        _: &v2::ClientContext,
        note: v2::UpdateSessionNotification,
    ) -> HandlerResult<()> {
        self.view
            .add(note.session_id.as_str(), note.meta.as_ref(), &note.update);
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &v2::ClientContext,
        req: v2::RequestPermissionRequest,
    ) -> HandlerResult<v2::RequestPermissionResponse> {
        self.view.add(req.session_id.as_str(), None, &req);
        self.may_answer().await;
        let chosen = v2::SelectedPermissionOutcome::new(&req.options[0].option_id);
        Ok(v2::RequestPermissionResponse::new(chosen))
    }

    async fn create_elicitation(
        &self,
        _: &v2::ClientContext,
        req: v2::CreateElicitationRequest,
    ) -> HandlerResult<v2::CreateElicitationResponse> {
        self.view.add("", None, &req);
        self.may_answer().await;
        let answer = json!({"action": "accept", "content": {"color": "red", "odd": null}});
        Ok(serde_json::from_value(answer)?)
    }
}

pub struct ClientV1 {
    pub agent: v1::AgentHandle,
    pub view: View,
    driver: JoinHandle<acp_sdk::Result<()>>,
}

pub struct ClientV2 {
    pub agent: v2::AgentHandle,
    pub view: View,
    pub hello: v2::InitializeResponse,
    driver: JoinHandle<acp_sdk::Result<()>>,
}

impl ClientV1 {
    pub async fn connect(server: &Server, answers: Answers) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(serve(server, theirs));
        let view = View::new();
        let watcher = Watcher {
            view: view.clone(),
            answers,
        };
        let driver = acp_sdk::connect::<v1::V1, _>(watcher, tokio::io::split(ours));
        let agent = driver.handle().clone();
        let driver = tokio::spawn(driver);
        let hello = v1::InitializeRequest::new(v1::ProtocolVersion::V1);
        agent.initialize(hello).await.unwrap();
        Self {
            agent,
            view,
            driver,
        }
    }

    pub async fn new_session(&self) -> String {
        let request = v1::NewSessionRequest::new("/w", vec![]);
        let response = self.agent.new_session(request).await.unwrap();
        response.session_id.to_string()
    }

    pub async fn resume(&self, session: &str) {
        let request = v1::ResumeSessionRequest::new(session, "/w");
        self.agent.resume_session(request).await.unwrap();
    }

    pub async fn prompt(&self, session: &str, text: &str) -> acp_sdk::Result<v1::PromptResponse> {
        let block = v1::TextContent::new(text).into();
        let request = v1::PromptRequest::new(session, vec![block]);
        self.agent.prompt(request).await
    }

    pub fn disconnect(self) {
        self.driver.abort();
    }
}

impl ClientV2 {
    pub async fn connect(server: &Server, answers: Answers) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(serve(server, theirs));
        let view = View::new();
        let watcher = Watcher {
            view: view.clone(),
            answers,
        };
        let driver = acp_sdk::connect::<v2::V2, _>(watcher, tokio::io::split(ours));
        let agent = driver.handle().clone();
        let driver = tokio::spawn(driver);
        let capabilities = json!({"elicitation": {"form": {}}});
        let info = v2::Implementation::new("test", "1");
        let hello = v2::InitializeRequest::new(v2::ProtocolVersion::V2, info)
            .with_capabilities(serde_json::from_value(capabilities).unwrap());
        let hello = agent.initialize(hello).await.unwrap();
        Self {
            agent,
            view,
            hello,
            driver,
        }
    }

    pub async fn new_session(&self) -> String {
        let request = v2::NewSessionRequest::new("/w");
        let response = self.agent.new_session(request).await.unwrap();
        response.session_id.to_string()
    }

    pub async fn resume(&self, session: &str) -> v2::ResumeSessionResponse {
        let request = v2::ResumeSessionRequest::new(session, "/w");
        self.agent.resume_session(request).await.unwrap()
    }

    pub async fn replay(&self, session: &str) -> v2::ResumeSessionResponse {
        let request = v2::ResumeSessionRequest::new(session, "/w")
            .with_replay_from(v2::ReplayFrom::Start(v2::ReplayFromStart::new()));
        self.agent.resume_session(request).await.unwrap()
    }

    /// Continues after an event, with the server's own method.
    pub async fn continue_after(&self, session: &str, event: u64) -> Value {
        let params = json!({"sessionId": session, "sinceEventId": event});
        self.ext("_acp-sdk/session/resume", params).await.unwrap()
    }

    /// Calls a method of the server's own.
    pub async fn ext(&self, method: &str, params: Value) -> acp_sdk::Result<Value> {
        let params = Json::from(params);
        let answer = self.agent.peer().call_ext(method, Some(&params)).await?;
        Ok(answer.parse().unwrap())
    }

    pub async fn prompt(&self, session: &str, text: &str) -> acp_sdk::Result<v2::PromptResponse> {
        let block = v2::TextContent::new(text).into();
        let request = v2::PromptRequest::new(session, vec![block]);
        self.agent.prompt(request).await
    }

    /// Prompts, and waits until the session is idle again.
    pub async fn turn(&self, session: &str, text: &str) -> Value {
        self.prompt(session, text).await.unwrap();
        self.view.state("idle").await
    }

    pub async fn cancel(&self, session: &str) {
        let note = v2::CancelSessionNotification::new(session);
        self.agent.cancel_session(note).await.unwrap();
    }

    pub fn disconnect(self) {
        self.driver.abort();
    }
}

pub fn serve(server: &Server, stream: tokio::io::DuplexStream) -> impl Future<Output = ()> + use<> {
    let mut connection = server.attach(tokio::io::split(stream));
    async move {
        let _ = connection.closed().await;
    }
}

/// Connects a client of version 1 to a new session, then one of version 2.
pub async fn v1_then_v2(
    server: &Server,
    old: Answers,
    new: Answers,
) -> (ClientV1, ClientV2, String) {
    let old = ClientV1::connect(server, old).await;
    let session = old.new_session().await;
    let new = ClientV2::connect(server, new).await;
    new.resume(&session).await;
    (old, new, session)
}

/// Connects a client of version 2 to a new session, then one of version 1.
pub async fn v2_then_v1(
    server: &Server,
    new: Answers,
    old: Answers,
) -> (ClientV2, ClientV1, String) {
    let new = ClientV2::connect(server, new).await;
    let session = new.new_session().await;
    let old = ClientV1::connect(server, old).await;
    old.resume(&session).await;
    (new, old, session)
}
