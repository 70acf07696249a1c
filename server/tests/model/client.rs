//! A client that keeps what it is sent, and can stop reading.

use std::sync::{Arc, Mutex};

use acp_sdk::v1::*;
use acp_sdk::{HandlerResult, Json, RunningConnection};
use acp_server::Server;
use serde_json::{Value, json};
use tokio::sync::watch;

/// What a client was sent since it attached.
#[derive(Default)]
pub struct View {
    /// The number and text of each update.
    pub updates: Vec<(u64, Value)>,
}

#[derive(Clone)]
struct Viewer {
    view: Arc<Mutex<View>>,
    reading: watch::Receiver<bool>,
}

impl Client for Viewer {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        let mut reading = self.reading.clone();
        // While it does not read, notifications gather up to the budget of the connection.
        reading.wait_for(|reading| *reading).await?;
        let meta: Value = note
            .meta
            .as_ref()
            .and_then(|meta| meta.get("acp-sdk"))
            .unwrap();
        let number = meta["eventId"].as_u64().unwrap();
        let update = serde_json::to_value(&note.update)?;
        self.view.lock().unwrap().updates.push((number, update));
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        let option = req.options[0].option_id.clone();
        let chosen = SelectedPermissionOutcome::new(option);
        let outcome = RequestPermissionOutcome::Selected(chosen);
        Ok(RequestPermissionResponse::new(outcome))
    }
}

pub struct Attached {
    pub name: String,
    pub agent: AgentHandle,
    pub view: Arc<Mutex<View>>,
    pub reading: watch::Sender<bool>,
    /// The view has the events after this one.
    pub since: u64,
    /// Up to this one they are a replay.
    pub replayed: u64,
    prompts: u64,
    server_side: RunningConnection,
    _driver: tokio::task::JoinHandle<acp_sdk::Result<()>>,
}

impl Attached {
    /// Connects and continues after `since`.
    pub async fn new(server: &Server, session: &SessionId, name: String, since: u64) -> Self {
        // Little room, so that a client that does not read is noticed.
        let (ours, theirs) = tokio::io::duplex(2048);
        let server_side = server.attach(tokio::io::split(theirs));
        let (reading, receiver) = watch::channel(true);
        let view = Arc::<Mutex<View>>::default();
        let viewer = Viewer {
            view: view.clone(),
            reading: receiver,
        };
        let (agent, driver) = acp_sdk::connect(viewer, tokio::io::split(ours));
        let driver = tokio::spawn(driver);
        let hello = InitializeRequest::new(ProtocolVersion::V1);
        agent.initialize(hello).await.unwrap();
        let mut attached = Self {
            name,
            agent,
            view,
            reading,
            since,
            replayed: 0,
            prompts: 0,
            server_side,
            _driver: driver,
        };
        attached.resume(session, since).await;
        attached
    }

    /// Sets the cursor back.
    pub async fn resume(&mut self, session: &SessionId, since: u64) {
        self.reading.send_replace(true);
        // Everything before the answer belongs to the view before it, so the view must be emptied
        // between: a resume of the same connection is only done when nothing is under way.
        self.view.lock().unwrap().updates.clear();
        let params = json!({ "sessionId": session, "sinceEventId": since });
        let params = Json::new(&params).unwrap();
        let answer = self
            .agent
            .peer()
            .call_ext("_acp-sdk/session/resume", Some(&params))
            .await;
        let answer: Value = answer.unwrap().parse().unwrap();
        assert_eq!(answer["truncated"], false);
        self.since = since.min(answer["lastEventId"].as_u64().unwrap());
        self.replayed = answer["lastEventId"].as_u64().unwrap();
        let replayed = answer["replayed"].as_u64().unwrap();
        let seen = self.view.lock().unwrap().updates.len() as u64;
        assert!(
            seen >= replayed,
            "{seen} of {replayed} replayed updates came before the answer"
        );
    }

    /// The text of this client's next prompt.
    pub fn next_text(&mut self, chunks: u64) -> String {
        self.prompts += 1;
        format!("{}:{} {chunks}", self.name, self.prompts)
    }

    pub fn seen(&self) -> u64 {
        let view = self.view.lock().unwrap();
        view.updates
            .last()
            .map_or(self.since, |(number, _)| *number)
    }

    pub async fn disconnect(self) {
        self.reading.send_replace(true);
        let ended = self.server_side.shutdown().await;
        // The client may have closed its side first.
        drop(ended);
    }
}
