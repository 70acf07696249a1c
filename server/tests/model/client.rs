//! A client that keeps what it is sent, and can stop reading.

use std::sync::{Arc, Mutex};

use acp_sdk::v1::*;
#[cfg(feature = "v2")]
use acp_sdk::v2;
use acp_sdk::{HandlerResult, Json, Meta, RunningConnection, V1};
use acp_server::Server;
use serde_json::{Value, json};
use tokio::sync::watch;

/// What a client was sent since it attached.
#[derive(Default)]
pub struct View {
    /// The number of each update, and the event that it stands for.
    pub updates: Vec<(u64, Value)>,
}

#[derive(Clone)]
struct Viewer {
    view: Arc<Mutex<View>>,
    reading: watch::Receiver<bool>,
}

impl Viewer {
    async fn record(&self, meta: Option<&Meta>, update: Value) -> HandlerResult<()> {
        let mut reading = self.reading.clone();
        // While it does not read, notifications gather up to the budget of the connection.
        reading.wait_for(|reading| *reading).await?;
        let meta: Value = meta.and_then(|meta| meta.get("acp-sdk")).unwrap();
        let number = meta["eventId"].as_u64().unwrap();
        self.view.lock().unwrap().updates.push((number, update));
        Ok(())
    }
}

impl Client for Viewer {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        let update = serde_json::to_value(&note.update)?;
        self.record(note.meta.as_ref(), update).await
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

#[cfg(feature = "v2")]
impl v2::Client for Viewer {
    async fn session_update(
        &self,
        _: &v2::ClientContext,
        note: v2::UpdateSessionNotification,
    ) -> HandlerResult<()> {
        let update = serde_json::to_value(&note.update)?;
        self.record(note.meta.as_ref(), crate::neutral::of_v2(update))
            .await
    }

    async fn request_permission(
        &self,
        _: &v2::ClientContext,
        req: v2::RequestPermissionRequest,
    ) -> HandlerResult<v2::RequestPermissionResponse> {
        let chosen = v2::SelectedPermissionOutcome::new(&req.options[0].option_id);
        Ok(v2::RequestPermissionResponse::new(chosen))
    }
}

/// The protocol version that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    #[cfg(feature = "v2")]
    V2,
}

/// The typed caller of a client.
#[derive(Clone)]
pub enum Caller {
    V1(AgentHandle),
    #[cfg(feature = "v2")]
    V2(v2::AgentHandle),
}

impl Caller {
    /// Connects and initializes.
    async fn new(
        version: Version,
        viewer: Viewer,
        stream: tokio::io::DuplexStream,
    ) -> (Self, Driver) {
        let transport = tokio::io::split(stream);
        match version {
            Version::V1 => {
                let driver = acp_sdk::connect::<V1, _>(viewer, transport);
                let agent = driver.handle().clone();
                let driver = tokio::spawn(driver);
                let hello = InitializeRequest::new(ProtocolVersion::V1);
                agent.initialize(hello).await.unwrap();
                (Self::V1(agent), driver)
            }
            #[cfg(feature = "v2")]
            Version::V2 => {
                let driver = acp_sdk::connect::<v2::V2, _>(viewer, transport);
                let agent = driver.handle().clone();
                let driver = tokio::spawn(driver);
                let info = v2::Implementation::new("model", "1");
                let hello = v2::InitializeRequest::new(v2::ProtocolVersion::V2, info);
                agent.initialize(hello).await.unwrap();
                (Self::V2(agent), driver)
            }
        }
    }

    async fn resume(&self, params: &Json) -> Value {
        const METHOD: &str = "_acp-sdk/session/resume";
        let answer = match self {
            Self::V1(agent) => agent.peer().call_ext(METHOD, Some(params)).await,
            #[cfg(feature = "v2")]
            Self::V2(agent) => agent.peer().call_ext(METHOD, Some(params)).await,
        };
        answer.unwrap().parse().unwrap()
    }

    /// Prompts, and waits for the answer or the end of the connection.
    pub async fn prompt(self, session: SessionId, text: String) {
        match self {
            Self::V1(agent) => {
                let block = ContentBlock::Text(TextContent::new(text));
                drop(agent.prompt(PromptRequest::new(session, vec![block])).await);
            }
            #[cfg(feature = "v2")]
            Self::V2(agent) => {
                let block = v2::TextContent::new(text).into();
                let request = v2::PromptRequest::new(session.as_str(), vec![block]);
                drop(agent.prompt(request).await);
            }
        }
    }

    pub async fn cancel(&self, session: &SessionId) {
        let sent = match self {
            Self::V1(agent) => agent.cancel(CancelNotification::new(session)).await,
            #[cfg(feature = "v2")]
            Self::V2(agent) => {
                let note = v2::CancelSessionNotification::new(session.as_str());
                agent.cancel_session(note).await
            }
        };
        sent.unwrap();
    }
}

type Driver = tokio::task::JoinHandle<acp_sdk::Result<()>>;

pub struct Attached {
    pub name: String,
    pub version: Version,
    pub agent: Caller,
    pub view: Arc<Mutex<View>>,
    pub reading: watch::Sender<bool>,
    /// The view has the events after this one.
    pub since: u64,
    /// Up to this one they are a replay.
    pub replayed: u64,
    prompts: u64,
    server_side: RunningConnection,
    _driver: Driver,
}

impl Attached {
    /// Connects and continues after `since`.
    pub async fn new(
        server: &Server,
        session: &SessionId,
        (name, version): (String, Version),
        since: u64,
    ) -> Self {
        // Little room, so that a client that does not read is noticed.
        let (ours, theirs) = tokio::io::duplex(2048);
        let server_side = server.attach(tokio::io::split(theirs));
        let (reading, receiver) = watch::channel(true);
        let view = Arc::<Mutex<View>>::default();
        let viewer = Viewer {
            view: view.clone(),
            reading: receiver,
        };
        let (agent, driver) = Caller::new(version, viewer, ours).await;
        let mut attached = Self {
            name,
            version,
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
        let answer = self.agent.resume(&params).await;
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
