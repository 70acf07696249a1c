//! The arguments, results, timeouts and cancellation of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::{Error, Event, TaskInput, TaskResult};
use acp_sdk::v1::{StopReason, ToolCallStatus};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::tool;
use crate::agent::{TestAgent, within};

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
    // A timeout beyond the range of time has no effect.
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
    // The call has no turn yet and does not start one.
    let error = within(tool.call("work").cancelled_by(token))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::CallCancelled { .. }), "{error}");
}
