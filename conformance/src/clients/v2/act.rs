//! The beginning and the end of a turn in version 2.

use serde_json::{Value, json};

use crate::clients::scripted_agent::ScriptedAgent;

/// Answers a prompt, and reports its message and the state `running`.
pub(in crate::clients) fn accept_prompt(
    stage: &mut ScriptedAgent,
    request: &Value,
    params: &Value,
) {
    stage.answer(request, &json!({"messageId": "user-1"}));
    let said = params.get("prompt").cloned().unwrap_or_default();
    stage.update(
        &json!({"sessionUpdate": "user_message", "messageId": "user-1",
        "content": said}),
    );
    stage.update(&json!({"sessionUpdate": "state_update", "state": "running"}));
}

/// Reports the state `idle`, with the reason for the end of the turn.
pub(in crate::clients) fn end_turn(stage: &mut ScriptedAgent, reason: &str) {
    stage.update(&json!({"sessionUpdate": "state_update", "state": "idle",
        "stopReason": reason}));
}
