//! An agent that offers everything: what it declares, the settings of its sessions, and how it
//! serves the methods that come with it.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::scripted_agent::{BEFORE, SESSION, STILL_THERE, ScriptedAgent};
use crate::wire::Version;

/// What an agent declares in its answer to `initialize`, with its login methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offers {
    /// Nothing.
    Nothing,
    /// A list of sessions.
    Sessions,
    /// Options of a session without a category, and with some that no client knows.
    OddCategories,
    /// Options of a session of a type that no client knows.
    OddTypes,
    /// All that it may.
    Everything,
}

impl Offers {
    /// Whether sessions have options.
    pub(super) fn has_options(self) -> bool {
        !matches!(self, Self::Nothing | Self::Sessions)
    }
}

/// The id of the option of a type that no client knows.
pub(super) const UNKNOWN_TYPE: &str = "dial";

/// The id of the login that the agent performs, and of the one in a terminal.
const LOGIN: &str = "agent-login";
const TERMINAL_LOGIN: &str = "terminal-login";

/// Returns the capabilities and the login methods.
pub(super) fn handshake(stage: &ScriptedAgent, offers: Offers) -> [Value; 2] {
    let version = stage.protocol;
    let capabilities = match (version, offers) {
        (Version::V1, Offers::Sessions) => json!({"sessionCapabilities": {"list": {}}}),
        (Version::V1, Offers::Everything) => json!({
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": true},
            "sessionCapabilities": {
                "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
            },
            "auth": {"logout": {}},
        }),
        (Version::V2, Offers::Everything) => json!({
            "session": {
                "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {}, "additionalDirectories": {},
            },
            "auth": {},
        }),
        (Version::V1, _) => json!({}),
        // A list is part of every `session`.
        (Version::V2, _) => json!({"session": {}}),
    };
    let mut methods = Vec::new();
    if offers == Offers::Everything {
        methods.push(match version {
            Version::V1 => json!({"id": LOGIN, "name": "Log in"}),
            Version::V2 => json!({"methodId": LOGIN, "type": "agent", "name": "Log in"}),
        });
        let id = match version {
            Version::V1 => "id",
            Version::V2 => "methodId",
        };
        if stage.declares("/auth/terminal") {
            methods.push(json!({id: TERMINAL_LOGIN, "type": "terminal", "name": "Log in here"}));
        }
    }
    [capabilities, Value::Array(methods)]
}

/// Whether the client may be sent options that are on or off.
fn has_switches(stage: &ScriptedAgent) -> bool {
    stage.protocol == Version::V2 || stage.declares("/session/configOptions/boolean")
}

/// The options of a session, at their defaults.
fn options(stage: &ScriptedAgent, offers: Offers) -> Value {
    let version = stage.protocol;
    let id = match version {
        Version::V1 => "id",
        Version::V2 => "configId",
    };
    let value = |value: &str, name: &str| json!({"value": value, "name": name});
    let group = |group: &str, name: &str, options: Value| match version {
        Version::V1 => json!({"group": group, "name": name, "options": options}),
        Version::V2 => json!({"groupId": group, "name": name, "options": options}),
    };
    let models = json!([
        group("small", "Small", json!([value("model-1", "Model 1")])),
        group("large", "Large", json!([value("model-2", "Model 2")])),
    ]);
    let mut options = vec![
        json!({id: "mode", "name": "Mode", "category": "mode", "type": "select",
            "currentValue": "ask", "options": [value("ask", "Ask"), value("code", "Code")]}),
        json!({id: "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": "model-1", "options": models}),
    ];
    match offers {
        Offers::OddCategories => {
            let odd = json!([null, "_acp-conformance", "unheard-of"]);
            for (number, category) in odd.as_array().into_iter().flatten().enumerate() {
                options.push(json!({id: format!("odd-{number}"), "name": "Odd",
                    "category": category, "type": "select", "currentValue": "a",
                    "options": [value("a", "A"), value("b", "B")]}));
            }
        }
        Offers::OddTypes => options.insert(
            0,
            json!({id: UNKNOWN_TYPE, "name": "Dial", "type": "_dial", "currentValue": 3, "range": [1, 9]}),
        ),
        _ => {}
    }
    if offers == Offers::Everything && has_switches(stage) {
        options.push(json!({id: "brave", "name": "Brave", "type": "boolean",
            "currentValue": false}));
    }
    Value::Array(options)
}

/// The modes of a session of version 1, of which this one is current.
fn modes(current: &Value) -> Value {
    json!({"currentModeId": current, "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "Change files"},
    ]})
}

/// The values that an option may have; `None` for one that is on or off.
pub(super) fn values(option: &Value) -> Option<Vec<&Value>> {
    let listed = option.get("options")?.as_array()?;
    let flat = listed.iter().filter(|entry| entry.get("options").is_none());
    let grouped = listed
        .iter()
        .filter_map(|entry| entry.get("options")?.as_array())
        .flatten();
    Some(
        flat.chain(grouped)
            .filter_map(|entry| entry.get("value"))
            .collect(),
    )
}

/// The option that this request is about.
pub(super) fn option<'a>(options: &'a Value, params: &Value) -> Option<&'a Value> {
    let wanted = params.get("configId")?;
    let mut options = options.as_array()?.iter();
    options.find(|option| option.get("configId").or(option.get("id")) == Some(wanted))
}

/// Whether a request sets an option of these to a value that it may have.
pub(super) fn is_offered(options: &Value, params: &Value) -> bool {
    let value = params.get("value").unwrap_or(&Value::Null);
    match option(options, params).map(values) {
        Some(Some(values)) => values.contains(&value),
        Some(None) => value.is_boolean(),
        None => false,
    }
}

/// The state of a session, for the answer to what opens it.
pub(super) fn session(stage: &mut ScriptedAgent, offers: Offers) -> Value {
    stage.options = options(stage, offers);
    state(stage)
}

fn state(stage: &ScriptedAgent) -> Value {
    let options = stage.options.clone();
    match stage.protocol {
        Version::V1 => {
            let mode = option(&options, &json!({"configId": "mode"}));
            let mode = mode.and_then(|mode| mode.get("currentValue")).cloned();
            json!({"modes": modes(&mode.unwrap_or_default()), "configOptions": options})
        }
        version @ Version::V2 => {
            json!({"configOptions": options, "availableCommands": commands(version)})
        }
    }
}

fn commands(version: Version) -> Value {
    match version {
        Version::V1 => json!([{"name": "look", "description": "Look around",
            "input": {"hint": "what to look at"}}]),
        Version::V2 => json!([{"type": "command", "name": "look", "description": "Look around",
            "input": {"type": "text", "hint": "what to look at"}}]),
    }
}

/// Serves a request for what is offered beyond prompts. Whether it was one.
pub(super) fn serve(stage: &mut ScriptedAgent, offers: Offers, request: &Value) -> bool {
    let version = stage.protocol;
    let method = request
        .get("method")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let params = request.get("params").cloned().unwrap_or_default();
    match method {
        "session/set_config_option" if offers.has_options() => match set(stage, &params) {
            true => {
                let options = json!({"configOptions": stage.options});
                stage.answer(request, &options);
            }
            false => stage.refuse(
                request,
                ErrorCode::INVALID_PARAMS,
                "there is no such option or value",
            ),
        },
        "session/set_mode" if offers.has_options() && version == Version::V1 => {
            let params = json!({"configId": "mode", "value": params.get("modeId")});
            match set(stage, &params) {
                true => stage.answer(request, &json!({})),
                false => stage.refuse(request, ErrorCode::INVALID_PARAMS, "there is no such mode"),
            }
        }
        _ if offers != Offers::Everything => return false,
        "session/load" | "session/resume" => {
            let state = session(stage, offers);
            stage.answer(request, &state);
        }
        "session/list" => stage.answer(request, &json!({"sessions": []})),
        "session/close" | "session/delete" => stage.answer(request, &json!({})),
        _ if crate::wire::login(method).is_some() => stage.answer(request, &json!({})),
        _ => return false,
    }
    true
}

/// Sets an option. Whether it has this value now.
fn set(stage: &mut ScriptedAgent, params: &Value) -> bool {
    if !is_offered(&stage.options, params) {
        return false;
    }
    let wanted = params.get("configId");
    let mut options = stage.options.as_array_mut().into_iter().flatten();
    let option = options.find(|option| option.get("configId").or(option.get("id")) == wanted);
    if let Some(option) = option {
        option["currentValue"] = params.get("value").cloned().unwrap_or_default();
    }
    true
}

/// Changes everything in a turn that an agent may change, and tells the client.
pub(super) fn changes(stage: &mut ScriptedAgent) {
    let version = stage.protocol;
    stage.ask(BEFORE, json!({}));
    let code = json!({"configId": "mode", "value": "code"});
    set(stage, &code);
    let options = stage.options.clone();
    stage.update(&json!({"sessionUpdate": "config_option_update", "configOptions": options}));
    if version == Version::V1 {
        stage.update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"}));
    }
    stage.update(&json!({"sessionUpdate": "available_commands_update",
        "availableCommands": commands(version)}));
    stage.update(&json!({"sessionUpdate": "session_info_update", "title": "A title"}));
    stage.update(&json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000}));
    let entries = json!([{"content": "Look", "priority": "high", "status": "in_progress"}]);
    let plan = match version {
        Version::V1 => json!({"sessionUpdate": "plan", "entries": entries}),
        Version::V2 => json!({"sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "plan-1", "entries": entries}}),
    };
    stage.update(&plan);
    // Ids that are unknown or answered are ignored. What is asked shows whether the client is there.
    let answered = stage.begin(STILL_THERE, json!({}));
    stage.is_answered(&answered);
    for id in [json!(format!("{SESSION}-none")), answered] {
        stage.notify("$/cancel_request", &json!({"requestId": id}));
    }
    stage.ask(STILL_THERE, json!({}));
}
