//! A session of version 2 from end to end: the example's agent with a client in memory.

use std::sync::Arc;

use acp_sdk::{ConnectionBuilder, HandlerResult, v2::*};
use tokio::sync::{Notify, mpsc};

#[path = "../../examples/agent-v2.rs"]
#[allow(dead_code, reason = "the example's entry is not called")]
mod example;

/// A client that forwards updates to a channel, and answers questions when `gate` opens.
struct Watcher {
    updates: mpsc::Sender<String>,
    gate: Arc<Notify>,
    allows: bool,
}

impl Client for Watcher {
    async fn request_permission(
        &self,
        cx: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        let asked = format!("asked {:?}", req.title);
        self.updates.send(asked).await.unwrap();
        let outcome = tokio::select! {
            () = cx.cancelled() => {
                self.updates.send("taken back".to_owned()).await.unwrap();
                CancelledPermissionOutcome::new().into()
            }
            () = self.gate.notified() => match self.allows {
                true => SelectedPermissionOutcome::new("yes").into(),
                false => RequestPermissionOutcome::from(CancelledPermissionOutcome::new()),
            },
        };
        Ok(RequestPermissionResponse::new(outcome))
    }

    async fn session_update(
        &self,
        _: &ClientContext,
        note: UpdateSessionNotification,
    ) -> HandlerResult<()> {
        assert_eq!(note.session_id.as_str(), "session-1");
        self.updates.send(described(&note.update)).await.unwrap();
        Ok(())
    }
}

/// An update in a few words.
fn described(update: &SessionUpdate) -> String {
    match update {
        SessionUpdate::UserMessage(message) => format!("user {}", message.message_id),
        SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            ContentBlock::Text(text) => format!("{} {}", chunk.message_id, text.text),
            other => panic!("{other:?}"),
        },
        SessionUpdate::StateUpdate(StateUpdate::Running(_)) => "running".to_owned(),
        SessionUpdate::StateUpdate(StateUpdate::RequiresAction(_)) => "blocked".to_owned(),
        SessionUpdate::StateUpdate(StateUpdate::Idle(idle)) => match &idle.stop_reason {
            Some(StopReason::EndTurn) => "idle, at the end".to_owned(),
            Some(StopReason::Cancelled) => "idle, cancelled".to_owned(),
            None => "idle".to_owned(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

struct Setup {
    agent: AgentHandle,
    updates: mpsc::Receiver<String>,
    gate: Arc<Notify>,
    session: SessionId,
}

/// The client and the agent, with a session.
async fn set_up(allows: bool) -> Setup {
    let (sender, updates) = mpsc::channel(32);
    let gate = Arc::new(Notify::new());
    let client = Watcher {
        updates: sender,
        gate: gate.clone(),
        allows,
    };
    let (near, far) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(acp_sdk::serve(example::agent(), (reader, writer)));
    let (reader, writer) = tokio::io::split(near);
    let driver = ConnectionBuilder::new().client(client, (reader, writer));
    let agent = driver.handle().clone();
    tokio::spawn(driver);
    let info = Implementation::new("watcher", "1");
    let request = InitializeRequest::new(ProtocolVersion::V2, info);
    let answer = agent.initialize(request).await.unwrap();
    assert_eq!(answer.protocol_version, ProtocolVersion::V2);
    assert_eq!(answer.info.name, "agent-v2");
    assert!(answer.capabilities.session.is_some());
    let session = agent.new_session(NewSessionRequest::new("/work")).await;
    Setup {
        agent,
        updates,
        gate,
        session: session.unwrap().session_id,
    }
}

impl Setup {
    async fn prompt(&self, text: &str) -> MessageId {
        let blocks = vec![ContentBlock::Text(TextContent::new(text))];
        let request = PromptRequest::new(self.session.clone(), blocks);
        self.agent.prompt(request).await.unwrap().message_id
    }

    async fn expect(&mut self, updates: &[&str]) {
        for expected in updates {
            assert_eq!(self.updates.recv().await.unwrap(), *expected);
        }
    }
}

#[tokio::test]
async fn a_prompt_is_accepted_worked_on_and_ended_by_a_state() {
    let mut setup = set_up(true).await;
    assert_eq!(setup.prompt("one ask two").await.as_str(), "message-2");
    setup
        .expect(&["user message-2", "running", "message-3 one", "blocked"])
        .await;
    setup.expect(&["asked \"Go on?\""]).await;
    setup.gate.notify_one();
    setup
        .expect(&["running", "message-3 two", "idle, at the end"])
        .await;
}

#[tokio::test]
async fn a_refused_permission_ends_the_work() {
    let mut setup = set_up(false).await;
    setup.prompt("ask never").await;
    setup.gate.notify_one();
    setup
        .expect(&["user message-2", "running", "blocked", "asked \"Go on?\""])
        .await;
    setup.expect(&["running", "idle, at the end"]).await;
}

#[tokio::test]
async fn cancelling_takes_questions_back_and_is_confirmed_by_a_state() {
    let mut setup = set_up(true).await;
    setup.prompt("ask").await;
    setup
        .expect(&["user message-2", "running", "blocked", "asked \"Go on?\""])
        .await;
    let cancel = CancelSessionNotification::new(setup.session.clone());
    setup.agent.cancel_session(cancel.clone()).await.unwrap();
    // The agent drops its request, which cancels it at the client; both lead to the end.
    let mut last = [
        setup.updates.recv().await.unwrap(),
        setup.updates.recv().await.unwrap(),
    ];
    last.sort();
    assert_eq!(last, ["idle, cancelled", "taken back"]);
    // Idle, it has nothing to cancel, and the next prompt is not affected.
    setup.agent.cancel_session(cancel).await.unwrap();
    setup.prompt("again").await;
    setup
        .expect(&[
            "user message-4",
            "running",
            "message-5 again",
            "idle, at the end",
        ])
        .await;
}

#[tokio::test]
async fn a_prompt_during_work_waits_for_its_turn() {
    let mut setup = set_up(true).await;
    setup.prompt("wait").await;
    setup.prompt("second").await;
    setup.expect(&["user message-2", "running"]).await;
    let cancel = CancelSessionNotification::new(setup.session.clone());
    setup.agent.cancel_session(cancel).await.unwrap();
    setup.expect(&["idle, cancelled"]).await;
    // The cancellation was about the second as well, which had been answered before it.
    setup
        .expect(&["user message-4", "running", "idle, cancelled"])
        .await;
}

#[tokio::test]
async fn a_session_is_listed_resumed_with_its_history_and_closed() {
    let mut setup = set_up(true).await;
    setup.prompt("hello").await;
    let told = [
        "user message-2",
        "running",
        "message-3 hello",
        "idle, at the end",
    ];
    setup.expect(&told).await;
    let listed = setup
        .agent
        .list_sessions(ListSessionsRequest::new())
        .await
        .unwrap();
    assert_eq!(listed.sessions, [SessionInfo::new("session-1", "/work")]);

    let request = ResumeSessionRequest::new(setup.session.clone(), "/work");
    setup.agent.resume_session(request.clone()).await.unwrap();
    // The answer comes after all that it tells: nothing is left to wait for.
    assert_eq!(setup.updates.try_recv().unwrap(), "idle");
    assert!(setup.updates.try_recv().is_err());
    let start = ReplayFrom::Start(ReplayFromStart::new());
    let request = request.with_replay_from(start);
    setup.agent.resume_session(request).await.unwrap();
    for expected in ["user message-2", "message-3 hello", "idle"] {
        assert_eq!(setup.updates.try_recv().unwrap(), expected);
    }

    setup.prompt("wait").await;
    setup.expect(&["user message-4", "running"]).await;
    let request = CloseSessionRequest::new(setup.session.clone());
    setup.agent.close_session(request).await.unwrap();
    setup.expect(&["idle, cancelled"]).await;
}
