//! The agent of version 2 that acts a scenario.

use serde_json::{Value, json};

use crate::clients::scenarios::Start;
use crate::clients::scripted_agent::{SESSION, ScriptedAgent};
use crate::clients::{Scenario, offers, pages};
use crate::wire::Version;

/// Serves one message. Returns whether the agent continues.
pub(in crate::clients) fn serve(
    stage: &mut ScriptedAgent,
    scenario: &Scenario,
    message: &Value,
) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").cloned().unwrap_or_default();
    if offers::serve(stage, Version::V2, scenario.offers, message) {
        return true;
    }
    match method {
        Some("initialize") => {
            stage.client = params;
            let info = json!({"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")});
            let [capabilities, methods] = offers::handshake(stage, Version::V2, scenario.offers);
            let answer = json!({"protocolVersion": scenario.version, "info": info,
                "capabilities": capabilities, "authMethods": methods});
            stage.answer(message, &answer);
        }
        Some("session/new") => {
            let cwd = params.get("cwd").and_then(Value::as_str);
            stage.folder = cwd.unwrap_or_default().to_owned();
            let mut state = json!({});
            if scenario.offers.has_options() {
                state = offers::session(stage, Version::V2, scenario.offers);
            }
            state["sessionId"] = json!(SESSION);
            stage.answer(message, &state);
        }
        Some("session/list") if scenario.start == Start::Listing => pages::list(stage, message),
        Some("session/list") => stage.answer(message, &json!({"sessions": []})),
        Some("session/resume" | "session/close") => stage.answer(message, &json!({})),
        Some("session/prompt") if scenario.refuses => {
            stage.refuse(message, -32603, "the model is out of order");
        }
        Some("session/prompt") => {
            stage.cancelled = false;
            stage.answer(message, &json!({"messageId": "user-1"}));
            let said = params.get("prompt").cloned().unwrap_or_default();
            stage.update(
                &json!({"sessionUpdate": "user_message", "messageId": "user-1",
                "content": said}),
            );
            stage.update(&json!({"sessionUpdate": "state_update", "state": "running"}));
            if !(scenario.turn)(stage) {
                return false;
            }
            let stop = stage.stop_reason();
            stage.update(&json!({"sessionUpdate": "state_update", "state": "idle",
                "stopReason": stop}));
        }
        Some(other) if message.get("id").is_some() => {
            stage.refuse(message, -32601, &format!("the agent has no method {other}"));
        }
        _ => {}
    }
    true
}
