//! Updates and events in a form that does not depend on the version.
//!
//! Version 2 has one update for a new tool call and for a change of one, and one state for a turn that
//! begins and for a question that is answered. What it makes of an event is mapped back here by hand,
//! apart from the encoder of the server.

use serde_json::{Value, json};

use crate::record::Entry;

/// Returns an event as clients of version 2 see it; `None` if they do not.
pub fn for_v2(entry: &Entry) -> Option<Value> {
    let value = &entry.value;
    Some(match entry.kind() {
        "turn_started" | "permission_answered" => json!({ "state": "running" }),
        "permission_asked" => json!({ "state": "requires_action" }),
        "turn_ended" => json!({
            "state": "idle",
            "stopReason": value["stopReason"],
            "error": value["error"],
        }),
        // The options have it.
        "current_mode_update" => return None,
        // What an option is differs too much to be mapped by hand.
        "config_option_update" => json!({ "sessionUpdate": "config_option_update" }),
        _ => value.clone(),
    })
}

/// Maps an update of version 2 back to the event that it stands for.
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
        "config_option_update" => return json!({ "sessionUpdate": kind }),
        // The handler gives a title to new calls only.
        "tool_call_update" if update["title"].is_string() => {
            update["sessionUpdate"] = "tool_call".into();
        }
        _ => {}
    }
    update
}
