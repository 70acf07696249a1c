//! What can be set in the reference agent of version 2: the options of a session, and the
//! commands that it knows.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The options of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    mode: String,
    brave: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: "ask".to_owned(),
            brave: false,
        }
    }
}

impl Settings {
    /// All options with their values.
    pub(super) fn listed(&self) -> Value {
        let mode = |value: &str, name: &str| json!({"value": value, "name": name});
        json!([
            {"configId": "mode", "name": "Mode", "category": "mode", "type": "select",
                "currentValue": self.mode, "options": [mode("ask", "Ask"), mode("code", "Code")]},
            {"configId": "brave", "name": "Brave", "type": "boolean", "currentValue": self.brave},
        ])
    }

    /// Sets an option; tells what is wrong with it.
    pub(super) fn set(&mut self, params: &Value) -> Result<(), String> {
        let id = params.get("configId").and_then(Value::as_str);
        let kind = params.get("type").and_then(Value::as_str);
        match (id, params.get("value")) {
            _ if !matches!(kind, Some("id" | "boolean")) => {
                Err("values have the type `id` or `boolean`".to_owned())
            }
            (Some("mode"), Some(Value::String(value))) if value == "ask" || value == "code" => {
                self.mode.clone_from(value);
                Ok(())
            }
            (Some("brave"), Some(Value::Bool(value))) => {
                self.brave = *value;
                Ok(())
            }
            _ => Err("there is no such option, or no such value".to_owned()),
        }
    }
}

/// The update that tells of the commands.
pub(super) fn commands() -> Value {
    let command = json!({"type": "command", "name": "look", "description": "Look around"});
    json!({"sessionUpdate": "available_commands_update", "availableCommands": [command]})
}
