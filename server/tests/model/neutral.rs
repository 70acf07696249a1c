//! Updates and events in a form that does not depend on the version.
//!
//! Version 2 has one update for a new tool call and for a change of one, and one state for a turn that
//! begins and for a question that is answered. What it makes of an event is mapped back here by hand,
//! apart from the encoder of the server.

use acp_server::event::EventBody;
#[cfg(feature = "v2")]
use acp_server::event::TurnEvent;
use serde_json::Value;
#[cfg(feature = "v2")]
use serde_json::json;

/// Returns an event as clients of version 1 see it; `None` if they do not.
pub fn for_v1(body: &EventBody) -> Option<Value> {
    match body {
        EventBody::Update(update) => Some(serde_json::to_value(update).unwrap()),
        _ => None,
    }
}

/// Returns an event as clients of version 2 see it.
#[cfg(feature = "v2")]
pub fn for_v2(body: &EventBody) -> Value {
    let turn = match body {
        EventBody::Update(update) => return serde_json::to_value(update).unwrap(),
        EventBody::Turn(turn) => turn,
        other => panic!("an unknown event: {other:?}"),
    };
    match turn {
        TurnEvent::TurnStarted { .. } | TurnEvent::PermissionAnswered { .. } => {
            json!({ "state": "running" })
        }
        TurnEvent::PermissionAsked { .. } => json!({ "state": "requires_action" }),
        TurnEvent::TurnEnded {
            stop_reason, error, ..
        } => json!({ "state": "idle", "stopReason": stop_reason, "error": error }),
        other => panic!("an event that the handler does not make: {other:?}"),
    }
}

/// Maps an update of version 2 back to the event that it stands for.
#[cfg(feature = "v2")]
pub fn of_v2(mut update: Value) -> Value {
    let kind = update["sessionUpdate"].as_str().unwrap_or_default();
    match kind {
        "state_update" => {
            let members = update.as_object_mut().unwrap();
            members.remove("sessionUpdate");
            if members["state"] == "idle" {
                let failed = members["stopReason"] == "error";
                let error = members.remove("error").unwrap_or_default();
                if failed {
                    members["stopReason"] = Value::Null;
                }
                members.insert("error".to_owned(), error["message"].clone());
            }
        }
        // The handler gives a title to new calls only.
        "tool_call_update" if update["title"].is_string() => {
            update["sessionUpdate"] = "tool_call".into();
        }
        _ => {}
    }
    update
}
