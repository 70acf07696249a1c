//! Results of tool calls.

use acp_sdk::v1::StopReason;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};

use crate::external::TaskResult;

/// Returns the result for the host: the agent's text for the model, and the rest as
/// `_meta["acp-sdk"]`.
pub(super) fn complete(result: TaskResult) -> CallToolResult {
    let meta = metadata(&result);
    let not_allowed = &result.metadata.not_allowed;
    let note = match &result.metadata.stop_reason {
        _ if !not_allowed.is_empty() => Some(format!(
            "The task was ended, because the agent did what nobody allowed: {}.",
            not_allowed.join("; ")
        )),
        StopReason::EndTurn => None,
        StopReason::Cancelled if result.metadata.timed_out => {
            Some("The agent ran out of time; this is what there is so far.".to_owned())
        }
        StopReason::Refusal => Some("The agent refused the task.".to_owned()),
        reason => Some(format!("The agent stopped early: {reason}.")),
    };
    let is_error = note.is_some();
    let mut content = vec![ContentBlock::text(result.text)];
    content.extend(note.map(ContentBlock::text));
    let answer = match is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    answer.with_meta(Some(meta))
}

/// Returns the result of a failed call, with the error for the model.
pub(super) fn failed(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// Returns the metadata of a result, without the content of tool calls, which may be large.
fn metadata(result: &TaskResult) -> MetaObject {
    let metadata = &result.metadata;
    let calls = metadata.tool_calls.iter().map(|call| {
        json!({
            "toolCallId": call.tool_call_id,
            "title": call.title,
            "kind": call.kind,
            "status": call.status,
        })
    });
    let ours = json!({
        "agent": metadata.agent,
        "sessionId": metadata.session_id,
        "stopReason": metadata.stop_reason,
        "timedOut": metadata.timed_out,
        "toolCalls": calls.collect::<Vec<Value>>(),
        "cost": metadata.cost,
        "turnCost": metadata.turn_cost,
        "tokens": metadata.tokens,
        "usage": metadata.usage,
        "elapsedSeconds": metadata.elapsed.as_secs_f64(),
        "truncated": metadata.truncated,
        "notAllowed": metadata.not_allowed,
    });
    let mut meta = MetaObject::new();
    meta.insert("acp-sdk".to_owned(), ours);
    meta
}
