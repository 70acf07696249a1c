//! Several clients of one server, and sessions that outlast them.

mod clients;
mod inside;
mod keys;
mod methods;
mod policies;
mod prompt_ids;
mod resuming;
mod room;
mod state;
mod steering;
mod undoing;

use acp_sdk::v1::*;
use acp_sdk::{Json, RunningConnection};
use acp_server::event::{Event, EventBody, TurnEvent};
use acp_server::{Received, Server, Session};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::editor::{Editor, Permission, everything, text};

/// One of several clients.
struct Guest {
    agent: AgentHandle,
    editor: Editor,
    client: JoinHandle<()>,
    served: RunningConnection,
}

impl Guest {
    async fn new(server: &Server) -> Self {
        Self::with(server, Permission::First).await
    }

    async fn with(server: &Server, permission: Permission) -> Self {
        let editor = Editor {
            permission,
            ..Editor::default()
        };
        Self::offering(server, editor, everything()).await
    }

    async fn offering(server: &Server, editor: Editor, offered: ClientCapabilities) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let served = server.attach(tokio::io::split(theirs));
        let driver = acp_sdk::connect(editor.clone(), tokio::io::split(ours));
        let agent = driver.handle().clone();
        let client = tokio::spawn(async move { drop(driver.await) });
        let hello = InitializeRequest::new(ProtocolVersion::V1).with_client_capabilities(offered);
        agent.initialize(hello).await.unwrap();
        Self {
            agent,
            editor,
            client,
            served,
        }
    }

    /// Connects two clients to a new session.
    async fn pair(server: &Server) -> (Self, Self, SessionId) {
        let (one, two) = (Self::new(server).await, Self::new(server).await);
        let session = one.create().await;
        two.resume(&session).await.unwrap();
        (one, two, session)
    }

    async fn create(&self) -> SessionId {
        let request = NewSessionRequest::new("/w", vec![]);
        self.agent.new_session(request).await.unwrap().session_id
    }

    /// Attaches to a session without a replay.
    async fn resume(&self, session: &SessionId) -> acp_sdk::Result<()> {
        let request = ResumeSessionRequest::new(session.clone(), "/w");
        self.agent.resume_session(request).await.map(drop)
    }

    async fn load(&self, session: &SessionId) {
        let request = LoadSessionRequest::new(session.clone(), "/w", vec![]);
        self.agent.load_session(request).await.unwrap();
    }

    fn start(&self, session: &SessionId, said: &str) -> JoinHandle<acp_sdk::Result<StopReason>> {
        let (agent, request) = (
            self.agent.clone(),
            PromptRequest::new(session.clone(), text(said)),
        );
        tokio::spawn(async move { agent.prompt(request).await.map(|answer| answer.stop_reason) })
    }

    async fn prompt(&self, session: &SessionId, said: &str) -> acp_sdk::Result<StopReason> {
        self.start(session, said).await.unwrap()
    }

    async fn ext(&self, method: &str, params: Value) -> acp_sdk::Result<Value> {
        let params = Json::from(params);
        let answer = self.agent.ext_request(method, Some(&params)).await?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// Disconnects without a word, and waits until the server has noticed it.
    async fn leave(mut self) {
        self.client.abort();
        let _ = self.client.await;
        let _ = self.served.closed().await;
    }
}

/// The texts of an agent's messages with their numbers.
fn texts(log: &[Value]) -> Vec<(u64, String)> {
    let updates = log.iter().filter_map(|entry| {
        let number = entry["params"]["_meta"]["acp-sdk"]["eventId"].as_u64()?;
        let text = entry["params"]["update"]["content"]["text"].as_str()?;
        Some((number, text.to_owned()))
    });
    updates.collect()
}

/// Waits for the end of a turn, and returns its stop reason.
async fn turn_end(session: &Session, after: u64) -> Option<StopReason> {
    let mut events = session.subscribe(after);
    loop {
        let received = events.next().await.unwrap();
        if let Received::Event(Event {
            body: EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. }),
            ..
        }) = received
        {
            return stop_reason;
        }
    }
}
