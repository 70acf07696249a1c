//! A recorded session: traffic as an agent writes it.

use acp_sdk::v1::{SessionNotification, ToolCallStatus};
use serde::Deserialize;

use super::*;

/// A turn of an agent that reads a file and summarises it, and a turn that is cancelled.
const RECORDING: &str = include_str!("recording.jsonl");

#[derive(Deserialize)]
struct Line {
    method: Option<String>,
    params: Option<Value>,
    result: Option<Value>,
}

#[test]
fn a_recorded_session_becomes_a_conversation() {
    let mut conversation = Conversation::new();
    for line in RECORDING.lines() {
        let line: Line = serde_json::from_str(line).unwrap();
        match (line.method.as_deref(), line.params, line.result) {
            (Some("session/prompt"), Some(params), _) => {
                let prompt: Vec<ContentBlock> =
                    serde_json::from_value(params["prompt"].clone()).unwrap();
                let _ = conversation.prompt(&prompt);
            }
            (Some("session/update"), Some(params), _) => {
                let update: SessionNotification = serde_json::from_value(params).unwrap();
                let _ = conversation.apply(&update.update);
            }
            (_, _, Some(result)) => {
                let reason: StopReason =
                    serde_json::from_value(result["stopReason"].clone()).unwrap();
                let _ = conversation.end_turn(Some(reason));
            }
            _ => {}
        }
    }
    let expected = [
        "user Summarise notes.txt",
        "thought The user wants a summary. I need the file.",
        "agent I read the file first.",
        "call Read notes.txt",
        "agent It lists three tasks:\n- build\n- test\n- ship",
        "end end_turn",
        "user Do them all",
        "agent Starting with the first",
        "call Run make",
        "end cancelled",
    ];
    assert_eq!(words(&conversation), expected);
    let status = |id: &str| conversation.tool_call(&id.into()).unwrap().1.status.clone();
    assert_eq!(status("call_1"), Some(ToolCallStatus::Completed));
    assert_eq!(status("call_2"), Some(ToolCallStatus::Failed));
    assert_eq!(conversation.usage().map(|usage| usage.used), Some(2310));
    assert_eq!(
        conversation.settings().title.as_deref(),
        Some("Tasks in notes.txt")
    );
    assert_eq!(conversation.plan().map(|plan| plan.entries.len()), Some(3));
}
