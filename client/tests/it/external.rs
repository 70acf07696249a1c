//! An agent as a tool, and an agent that delegates.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_client::{
    Client, Decision, Error, Event, ExternalAgent, ExternalAgentEvent, ExternalAgentEventKind,
    Forward, PermissionRequest, Permissions, Policy, TaskInput, TaskResult,
};
use acp_sdk::v1::*;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::{Raw, TestAgent, connect, within};

/// A tool whose agent is connected to.
async fn tool(agent: TestAgent) -> ExternalAgent {
    ExternalAgent::new(connect(agent, Client::builder()).await).directory("/")
}

/// A tool whose raw agent can close sessions.
async fn raw_tool() -> (ExternalAgent, Raw) {
    let hello = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "sessionCapabilities": { "close": {} } },
    });
    let (client, raw) = Raw::connect_saying(Client::builder(), hello).await;
    (ExternalAgent::new(client).directory("/"), raw)
}

/// Answers a request.
async fn answer(raw: &mut Raw, request: &Value, result: Value) {
    raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        .await;
}

/// An agent that is started in memory, and can be made to die.
#[derive(Clone, Default)]
struct Startable {
    agent: TestAgent,
    starts: Arc<AtomicUsize>,
    running: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Startable {
    fn tool(&self) -> ExternalAgent {
        let this = self.clone();
        let start = move || {
            let this = this.clone();
            async move {
                this.starts.fetch_add(1, Ordering::Relaxed);
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let (reader, writer) = tokio::io::split(theirs);
                let agent = this.agent.clone();
                let running = tokio::spawn(async move {
                    let _ = acp_sdk::serve(agent, (reader, writer)).await;
                });
                *this.running.lock().unwrap() = Some(running);
                let (reader, writer) = tokio::io::split(ours);
                Client::builder().connect((reader, writer)).await
            }
        };
        ExternalAgent::start_with(start).directory("/")
    }

    async fn die(&self) {
        let running = self.running.lock().unwrap().take().unwrap();
        running.abort();
        let _ = running.await;
    }
}

#[tokio::test]
async fn a_task_goes_in_and_a_result_comes_out() {
    let tool = tool(TestAgent::default()).await.name("worker");
    let updates = Arc::new(AtomicUsize::new(0));
    let counted = updates.clone();
    let count = move |event: &Event| {
        let is_update = usize::from(matches!(event, Event::Update(_)));
        counted.fetch_add(is_update, Ordering::Relaxed);
    };
    let result = within(tool.call("work").on_event(count)).await.unwrap();
    assert_eq!(updates.load(Ordering::Relaxed), 8);
    assert_eq!(result.text, "One.\n\nTwo.");
    assert_eq!(result.to_string(), result.text);
    let metadata = &result.metadata;
    assert_eq!(metadata.agent, "worker");
    assert_eq!(metadata.session_id.as_str(), "/");
    assert_eq!(metadata.stop_reason, StopReason::EndTurn);
    assert!(!metadata.timed_out && !metadata.truncated);
    assert_eq!(metadata.thoughts, "Hm.");
    assert_eq!(metadata.tool_calls.len(), 1);
    assert_eq!(
        metadata.tool_calls[0].status,
        Some(ToolCallStatus::Completed)
    );
    assert_eq!(metadata.cost.as_ref().map(|cost| cost.amount), Some(0.5));
    assert_eq!(metadata.usage.as_ref().map(|usage| usage.used), Some(7));

    let written = serde_json::to_value(&result).unwrap();
    assert_eq!(written["metadata"]["stopReason"], "end_turn");
    assert!(written["metadata"]["elapsedSeconds"].is_f64(), "{written}");
    let read: TaskResult = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), written);

    let error = within(tool.call("fail")).await.unwrap_err();
    assert!(error.to_string().contains("as you wish"), "{error}");
}

#[tokio::test]
async fn it_has_the_form_of_a_tool() {
    let tool = tool(TestAgent::default()).await;
    let tool = tool.name("reviewer").description("Reviews.");
    assert_eq!(
        (tool.tool_name(), tool.tool_description()),
        ("reviewer", "Reviews.")
    );
    let schema = tool.input_schema();
    assert_eq!(schema["required"], json!(["task"]));
    let members: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["task"]);
    let input: TaskInput = serde_json::from_value(json!({"task": "hello"})).unwrap();
    let result = within(tool.call(input)).await.unwrap();
    assert_eq!(result.text, "hello");
    for wrong in [
        json!({}),
        json!({"task": 1}),
        json!({"task": "a", "more": 1}),
    ] {
        assert!(serde_json::from_value::<TaskInput>(wrong).is_err());
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let agent = TestAgent::default();
    let tool = tool(agent.clone()).await;
    let dir = tempfile::tempdir().unwrap();
    let hanging = async { tool.call("hang").await };
    let others = async {
        agent.hanging.notified().await;
        let result = tool.call("quick").directory(dir.path()).await.unwrap();
        agent.cancelled.notify_one();
        result.text
    };
    let (hung, quick) = within(async { tokio::join!(hanging, others) }).await;
    assert_eq!(quick, "quick");
    assert_eq!(hung.unwrap().text, "workingstopped");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let tool = tool(TestAgent::default()).await;
    let tool = tool.timeout(Duration::from_millis(50));
    let result = within(tool.call("hang")).await.unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    assert!(result.metadata.timed_out);
    assert_eq!(result.text, "workingstopped");
    // A timeout beyond all time is none.
    let call = tool.call("work").timeout(Duration::MAX);
    assert!(!within(call).await.unwrap().metadata.timed_out);
}

#[tokio::test]
async fn a_token_cancels_a_call_at_any_time() {
    let agent = TestAgent::default();
    let tool = tool(agent.clone()).await;
    let token = CancellationToken::new();
    let call = async { tool.call("hang").cancelled_by(token.clone()).await };
    let cancel = async {
        agent.hanging.notified().await;
        token.cancel();
    };
    let (result, ()) = within(async { tokio::join!(call, cancel) }).await;
    let result = result.unwrap();
    assert_eq!(result.metadata.stop_reason, StopReason::Cancelled);
    assert!(!result.metadata.timed_out);
    assert_eq!(result.text, "workingstopped");
    // It has no turn yet, and gets none.
    let error = within(tool.call("work").cancelled_by(token))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::CallCancelled { .. }), "{error}");
}

#[tokio::test]
async fn no_session_is_opened_without_a_place_and_none_is_free_before_one_is_closed() {
    let (tool, mut raw) = raw_tool().await;
    let tool = tool.max_concurrent(1);
    let mut first = tokio::spawn(tool.call("first").into_future());
    let opening = raw.next().await;
    assert_eq!(opening["method"], "session/new");
    let timeout = Duration::from_millis(20);
    let error = within(tool.call("late").timeout(timeout))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::CallTimeout { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("one of the concurrent calls to end"),
        "{error}"
    );

    answer(&mut raw, &opening, json!({"sessionId": "1"})).await;
    let prompt = raw.next().await;
    assert_eq!(
        prompt["method"], "session/prompt",
        "the late call has sent something"
    );
    // The first is dropped while its turn runs; the second waits until its session is closed.
    first.abort();
    assert!((&mut first).await.unwrap_err().is_cancelled());
    let second = tokio::spawn(tool.call("second").into_future());
    assert_eq!(raw.next().await["method"], "session/cancel");
    answer(&mut raw, &prompt, json!({"stopReason": "cancelled"})).await;
    let closing = raw.next().await;
    assert_eq!(closing["method"], "session/close");
    answer(&mut raw, &closing, json!({})).await;
    let opening = raw.next().await;
    assert_eq!(opening["method"], "session/new");
    answer(&mut raw, &opening, json!({"sessionId": "2"})).await;
    let prompt = raw.next().await;
    answer(&mut raw, &prompt, json!({"stopReason": "end_turn"})).await;
    raw.answer("session/close", json!({})).await;
    within(second).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled() {
    let agent = TestAgent::default();
    let tool = tool(agent.clone()).await;
    tokio::select! {
        _ = tool.call("hang").into_future() => panic!("it hangs"),
        () = agent.hanging.notified() => {}
    }
    within(agent.stopped.notified()).await;
    within(agent.closed.notified()).await;
}

#[tokio::test]
async fn a_call_that_is_dropped_before_its_session_is_there_closes_it() {
    let (tool, mut raw) = raw_tool().await;
    let request = tokio::select! {
        _ = tool.call("work").into_future() => panic!("there is no answer"),
        request = raw.next() => request,
    };
    assert_eq!(request["method"], "session/new");
    answer(&mut raw, &request, json!({"sessionId": "s"})).await;
    let params = raw.params("session/close", json!({})).await;
    assert_eq!(params, json!({"sessionId": "s"}));
}

#[tokio::test]
async fn the_agent_is_started_once_and_again_when_it_has_died() {
    let startable = Startable::default();
    let tool = startable.tool();
    let starts = || startable.starts.load(Ordering::Relaxed);
    assert_eq!(starts(), 0);
    let both = async { tokio::join!(tool.setup(), tool.setup()) };
    let (first, second) = within(both).await;
    first.and(second).unwrap();
    within(tool.call("work")).await.unwrap();
    assert_eq!(starts(), 1);
    for expected in 2..5 {
        startable.die().await;
        // Whether or not the client has noticed.
        let result = within(tool.call("work")).await.unwrap();
        assert_eq!((result.text.as_str(), starts()), ("One.\n\nTwo.", expected));
    }
    within(tool.cleanup()).await;
    within(tool.call("work")).await.unwrap();
    assert_eq!(starts(), 5);
}

/// An agent that is asked for a session, and dies of it.
#[derive(Clone, Default)]
struct Dying {
    asked: Arc<tokio::sync::Notify>,
}

impl Agent for Dying {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> acp_sdk::HandlerResult<InitializeResponse> {
        Ok(InitializeResponse::new(ProtocolVersion::V1))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        self.asked.notify_one();
        std::future::pending().await
    }

    async fn prompt(
        &self,
        _: &AgentContext,
        _: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        std::future::pending().await
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// The death of an agent may be noticed only when it is asked for a session. It is started again
/// once for that, not for ever.
#[tokio::test]
async fn an_agent_that_dies_of_a_call_is_started_again_once() {
    for (dying, expected) in [(1, 2), (5, 2)] {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = starts.clone();
        let tool = ExternalAgent::start_with(move || {
            let number = counted.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let streams = tokio::io::split(theirs);
                tokio::spawn(async move {
                    if number > dying {
                        let _ = acp_sdk::serve(TestAgent::default(), streams).await;
                        return;
                    }
                    let agent = Dying::default();
                    let asked = agent.asked.clone();
                    tokio::select! {
                        _ = acp_sdk::serve(agent, streams) => {}
                        () = asked.notified() => {}
                    }
                });
                Client::builder().connect(tokio::io::split(ours)).await
            }
        });
        let result = within(tool.call("work").directory("/")).await;
        assert_eq!(result.is_ok(), dying < expected, "{result:?}");
        assert_eq!(starts.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_tried_again_by_the_next_call() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let tool = ExternalAgent::start_with(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Client::builder().spawn(acp_client::AgentCommand::new("/nonexistent/agent"))
    });
    for expected in 1..3 {
        let error = within(tool.call("work")).await.unwrap_err();
        assert!(matches!(error, Error::Spawn { .. }), "{error}");
        assert_eq!(starts.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn nobody_waits_for_an_agent_that_does_not_start() {
    let tool = ExternalAgent::start_with(std::future::pending);
    let timeout = Duration::from_millis(20);
    for _ in 0..2 {
        let error = within(tool.call("work").timeout(timeout))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("waiting for the agent"),
            "{error}"
        );
    }
    // What was dropped holds neither the start nor a place.
    let tool = tool.max_concurrent(1);
    for _ in 0..2 {
        let error = within(tool.call("work").timeout(timeout))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("waiting for the agent"),
            "{error}"
        );
        tokio::task::yield_now().await;
    }
}

/// What an event is about, in a word.
fn word(event: &ExternalAgentEvent) -> String {
    match &event.kind {
        ExternalAgentEventKind::Started { task } => format!("started {task}"),
        ExternalAgentEventKind::ToolCall {
            tool_call_id,
            status,
            ..
        } => {
            format!(
                "{tool_call_id} {}",
                status.clone().unwrap_or(ToolCallStatus::Pending)
            )
        }
        ExternalAgentEventKind::Completed {
            text,
            error,
            tool_calls,
            ..
        } => {
            format!("completed {text:?} {tool_calls} {}", error.is_some())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn events_are_sent_to_all_who_listen_and_wait_for_nobody() {
    let agent = TestAgent::default();
    let tool = tool(agent.clone()).await.name("worker");
    let (mut events, mut lagging) = (tool.subscribe(), tool.subscribe());
    within(tool.call("work")).await.unwrap();
    within(tool.call("fail")).await.unwrap_err();
    tokio::select! {
        _ = tool.call("hang").into_future() => panic!("it hangs"),
        () = agent.hanging.notified() => {}
    }
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        assert_eq!(event.agent, "worker");
        let written = serde_json::to_string(&event).unwrap();
        assert_eq!(
            serde_json::from_str::<ExternalAgentEvent>(&written).unwrap(),
            event
        );
        seen.push(format!("{} {}", event.call, word(&event)));
    }
    let expected = [
        "1 started work",
        "1 call pending",
        "1 call completed",
        "1 completed \"One.\\n\\nTwo.\" 1 false",
        "2 started fail",
        "2 completed \"\" 0 true",
        "3 started hang",
        "3 completed \"\" 0 true",
    ];
    assert_eq!(seen, expected);
    // The session of the dropped call may still be open, and this agent names it by its directory.
    let dir = tempfile::tempdir().unwrap();
    for _ in 0..100 {
        within(tool.call("work").directory(dir.path()))
            .await
            .unwrap();
    }
    match lagging.recv().await {
        Err(RecvError::Lagged(count)) => assert_eq!(count, 408 - 256),
        other => panic!("{other:?}"),
    }
}

/// Counts the sessions that are opened and closed.
#[derive(Clone, Default)]
struct Counting {
    opened: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    closed: Arc<tokio::sync::Notify>,
}

impl Agent for Counting {
    async fn initialize(
        &self,
        _: &AgentContext,
        _: InitializeRequest,
    ) -> acp_sdk::HandlerResult<InitializeResponse> {
        let session = SessionCapabilities::new().with_close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new().with_session_capabilities(session);
        Ok(InitializeResponse::new(ProtocolVersion::V1).with_agent_capabilities(capabilities))
    }

    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        let id = self.opened.fetch_add(1, Ordering::SeqCst);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        tokio::task::yield_now().await;
        Ok(NewSessionResponse::new(id.to_string()))
    }

    async fn close_session(
        &self,
        _: &AgentContext,
        _: CloseSessionRequest,
    ) -> acp_sdk::HandlerResult<CloseSessionResponse> {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.closed.notify_one();
        Ok(CloseSessionResponse::new())
    }

    async fn prompt(
        &self,
        cx: &AgentContext,
        _: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        Ok(PromptResponse::new(match cx.is_cancelled() {
            true => StopReason::Cancelled,
            false => StopReason::EndTurn,
        }))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// Calls that are dropped after each number of steps leave no session open, and the limit holds.
async fn dropped_everywhere() {
    let agent = Counting::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(acp_sdk::serve(agent.clone(), (reader, writer)));
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::builder().connect((reader, writer)).await.unwrap();
    let tool = ExternalAgent::new(client).directory("/").max_concurrent(3);
    let mut calls = tokio::task::JoinSet::new();
    for steps in 0..200 {
        let call = tool.call("work").into_future();
        calls.spawn(async move {
            let steps = async {
                for _ in 0..steps {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                result = call => drop(result.unwrap()),
                () = steps => {}
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    // Places are free again when all sessions are closed; a call then has a whole turn.
    tool.call("work").await.unwrap();
    while agent.open.load(Ordering::SeqCst) > 0 {
        agent.closed.notified().await;
    }
    let most = agent.most.load(Ordering::SeqCst);
    assert!(most <= 3, "{most} sessions were open");
    assert!(agent.opened.load(Ordering::SeqCst) > 1);
}

#[tokio::test]
async fn calls_that_are_dropped_at_any_moment_leave_no_session_on_one_thread() {
    within(dropped_everywhere()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_are_dropped_at_any_moment_leave_no_session_on_several_threads() {
    within(dropped_everywhere()).await;
}

/// An agent that has everything done by another one, and passes its questions on.
struct Delegating {
    agent: TestAgent,
}

impl Agent for Delegating {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> acp_sdk::HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("outer"))
    }

    async fn prompt(
        &self,
        cx: &AgentContext,
        req: PromptRequest,
    ) -> acp_sdk::HandlerResult<PromptResponse> {
        let forward = Forward::new(cx.client().clone(), req.session_id.clone());
        let builder = Client::builder().permissions(forward);
        let tool = ExternalAgent::new(connect(self.agent.clone(), builder).await);
        let result = tool.call(req.prompt).directory("/").await;
        let result = result.map_err(acp_sdk::HandlerError::internal)?;
        Ok(PromptResponse::new(result.metadata.stop_reason))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> acp_sdk::HandlerResult<()> {
        Ok(())
    }
}

/// A policy that notes what it is asked.
#[derive(Clone)]
struct Noting(Policy, Arc<Mutex<Vec<PermissionRequest>>>);

impl Permissions for Noting {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.1.lock().unwrap().push(question.clone());
        self.0.decide(question).await
    }
}

#[tokio::test]
async fn a_delegating_agent_passes_questions_on_to_its_own_client() {
    for (policy, id) in [(Policy::ApproveAll, "4"), (Policy::DenyAll, "3")] {
        let agent = TestAgent::default();
        let delegating = Delegating {
            agent: agent.clone(),
        };
        let asked = Arc::default();
        let noting = Noting(policy, Arc::clone(&asked));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(acp_sdk::serve(delegating, (reader, writer)));
        let (reader, writer) = tokio::io::split(ours);
        let builder = Client::builder().permissions(noting);
        let client = within(builder.connect((reader, writer))).await.unwrap();
        let session = within(client.new_session("/")).await.unwrap();
        let turn = session.prompt("ask edit").await.unwrap();
        within(turn.outcome()).await.unwrap();

        let chosen = json!({"outcome": "selected", "optionId": id});
        assert_eq!(*agent.answered.lock().unwrap(), [chosen]);
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].request.session_id.as_str(), "outer");
        assert_eq!(asked[0].title.as_deref(), Some("Do it"));
        assert_eq!(asked[0].kind, Some(ToolKind::Edit));
    }
}
