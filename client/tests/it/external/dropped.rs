//! Calls that are dropped: their sessions are closed, and the limit of concurrent calls holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::{Client, Error, ExternalAgent};
use acp_sdk::v1::*;
use serde_json::json;

use super::{answer, raw_tool, tool};
use crate::agent::{TestAgent, within};

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
    // Permits are released when all sessions are closed; this call then has a whole turn.
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
