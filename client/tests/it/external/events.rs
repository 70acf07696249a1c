//! The events of an agent for all its calls.

use acp_client::{ExternalAgentEvent, ExternalAgentEventKind};
use acp_sdk::v1::ToolCallStatus;
use tokio::sync::broadcast::error::RecvError;

use super::tool;
use crate::agent::{TestAgent, within};

/// Returns an event in one word.
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
    // The session of the dropped call may still be open, and this agent uses the directory as its
    // id.
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
