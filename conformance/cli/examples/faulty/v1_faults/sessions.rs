//! Agents with a defect in the initialization, in the setup of sessions, or in their settings.

use serde_json::{Value, json};

use crate::connection::Step::{Handle, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{answers, hold, is_request, kind, pretend, refusal, success};

pub(crate) static SESSIONS: &[Fault] = &[
    fault(
        "echoes-version",
        "Agrees to any protocol version that the client asks for.",
    )
    .incoming(|memory, m| {
        if m["method"] == "initialize" {
            memory.note = m["params"]["protocolVersion"].clone();
        }
        vec![Handle(m)]
    })
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "initialize") {
            m["result"]["protocolVersion"] = memory.note.clone();
        }
        vec![Write(m)]
    }),
    fault(
        "version-as-string",
        "Writes the protocol version as a string.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "initialize") {
            m["result"]["protocolVersion"] = json!("1");
        }
        vec![Write(m)]
    }),
    fault(
        "rejects-new-capability",
        "Refuses initialize with a client capability that it does not know.",
    )
    .incoming(|_, m| {
        let known = ["fs", "terminal", "_meta", "auth", "elicitation", "session"];
        let capabilities = m["params"]["clientCapabilities"].as_object();
        let unknown =
            capabilities.is_some_and(|all| all.keys().any(|key| !known.contains(&key.as_str())));
        if unknown {
            vec![refusal(&m, -32602)]
        } else {
            vec![Handle(m)]
        }
    }),
    fault(
        "requires-capabilities",
        "Refuses initialize without clientCapabilities.",
    )
    .incoming(|_, m| {
        let missing =
            m["method"] == "initialize" && m["params"].get("clientCapabilities").is_none();
        if missing {
            vec![refusal(&m, -32602)]
        } else {
            vec![Handle(m)]
        }
    }),
    fault(
        "auth-method-nameless",
        "Declares a method of authentication without a name.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "initialize") {
            m["result"]["authMethods"] = json!([{"id": "key"}]);
        }
        vec![Write(m)]
    }),
    fault(
        "declares-http-without",
        "Declares MCP servers over HTTP and refuses them.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "initialize") {
            m["result"]["agentCapabilities"]["mcpCapabilities"] = json!({"http": true});
        }
        vec![Write(m)]
    }),
    fault(
        "declares-image-without",
        "Declares images in prompts and refuses them.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "initialize") {
            m["result"]["agentCapabilities"]["promptCapabilities"] = json!({"image": true});
        }
        vec![Write(m)]
    }),
    fault("duplicate-session-ids", "Gives every session the same id.").outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            if memory.note.is_null() {
                memory.note = m["result"]["sessionId"].clone();
            }
            m["result"]["sessionId"] = memory.note.clone();
        }
        vec![Write(m)]
    }),
    fault(
        "relative-cwd-accepted",
        "Accepts a relative working directory.",
    )
    .incoming(|_, mut m| {
        if let Some(cwd) = m["params"]["cwd"]
            .as_str()
            .filter(|cwd| !cwd.starts_with('/'))
        {
            m["params"]["cwd"] = json!(format!("/{cwd}"));
        }
        vec![Handle(m)]
    }),
    fault(
        "cwd-of-process",
        "Uses the directory it was started in for all sessions.",
    )
    .incoming(|_, mut m| {
        let valid = m["params"]["cwd"]
            .as_str()
            .is_some_and(|cwd| cwd.starts_with('/'));
        if valid && m["method"] != "session/list" {
            let cwd = std::env::current_dir().unwrap_or_default();
            m["params"]["cwd"] = json!(cwd.to_string_lossy());
        }
        vec![Handle(m)]
    }),
    fault(
        "mcp-ignored",
        "Starts none of the MCP servers of a session.",
    )
    .incoming(|_, mut m| {
        if m["params"]["mcpServers"].is_array() {
            m["params"]["mcpServers"] = json!([]);
        }
        vec![Handle(m)]
    }),
    fault(
        "load-replays-late",
        "Replays the conversation after the response to session/load.",
    )
    .outgoing(|memory, m| {
        let chunk = memory.note == true && m["method"] == "session/update";
        if memory.answered(&m) == "session/load" {
            memory.note = Value::Null;
        }
        hold(memory, m, chunk, "session/load")
    })
    .incoming(|memory, m| {
        if m["method"] == "session/load" {
            memory.note = json!(true);
        }
        vec![Handle(m)]
    }),
    fault(
        "load-without-tool-calls",
        "Leaves tool calls out when it replays a session.",
    )
    .outgoing(|memory, m| {
        if memory.answered(&m) == "session/load" {
            memory.note = Value::Null;
        }
        let skipped = memory.note == true && kind(&m).starts_with("tool_call");
        if skipped { vec![] } else { vec![Write(m)] }
    })
    .incoming(|memory, m| {
        if m["method"] == "session/load" {
            memory.note = json!(true);
        }
        vec![Handle(m)]
    }),
    fault(
        "load-without-user",
        "Leaves the user's messages out when it replays a session.",
    )
    .outgoing(|_, m| {
        if kind(&m) == "user_message_chunk" {
            vec![]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "load-without-replay",
        "Answers session/load without replaying the conversation.",
    )
    .incoming(|_, mut m| {
        if m["method"] == "session/load" {
            m["method"] = json!("session/resume");
        }
        vec![Handle(m)]
    }),
    fault(
        "load-unknown-creates",
        "Answers session/load of an unknown session as if it existed.",
    )
    .outgoing(|memory, m| {
        let unknown = memory.answered(&m) == "session/load" && m["error"]["code"] == -32002;
        if unknown {
            vec![success(&m, json!({}))]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "shared-history",
        "Replays the conversations of all sessions for every session.",
    )
    .incoming(|memory, m| {
        if m["method"] != "session/load" || !memory.held.contains(&m["params"]["sessionId"]) {
            return vec![Handle(m)];
        }
        memory.note = m["params"]["sessionId"].clone();
        let others = memory.held.iter().filter(|other| **other != memory.note);
        let loads = others.map(|other| {
            let mut load = m.clone();
            load["id"] = json!("other");
            load["params"]["sessionId"] = other.clone();
            load
        });
        loads.chain([m.clone()]).map(Handle).collect()
    })
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            memory.held.push(m["result"]["sessionId"].clone());
        }
        if m["id"] == "other" {
            return vec![];
        }
        if !memory.note.is_null() && m["method"] == "session/update" {
            m["params"]["sessionId"] = memory.note.clone();
        }
        if memory.answered(&m) == "session/load" {
            memory.note = Value::Null;
        }
        vec![Write(m)]
    }),
    fault(
        "resume-replays",
        "Replays the conversation in session/resume.",
    )
    .incoming(|_, mut m| {
        if m["method"] == "session/resume" {
            m["method"] = json!("session/load");
        }
        vec![Handle(m)]
    }),
    fault(
        "list-ignores-cwd",
        "Lists the sessions of all directories when one is asked for.",
    )
    .incoming(|_, mut m| {
        if m["method"] == "session/list" && m["params"]["cwd"].is_string() {
            m["params"]["cwd"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault(
        "endless-pages",
        "Ignores the cursor and always declares another page.",
    )
    .incoming(|_, mut m| {
        if m["method"] == "session/list" {
            m["params"]["cursor"] = Value::Null;
        }
        vec![Handle(m)]
    })
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/list") {
            m["result"]["nextCursor"] = json!("after-5");
        }
        vec![Write(m)]
    }),
    fault(
        "invalid-cursor-accepted",
        "Answers a cursor that it never issued with the first page.",
    )
    .incoming(|_, mut m| {
        let cursor = m["params"]["cursor"].as_str();
        if m["method"] == "session/list"
            && cursor.is_some_and(|cursor| !cursor.starts_with("after-"))
        {
            m["params"]["cursor"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault(
        "list-refused",
        "Declares session/list and answers it with -32601.",
    )
    .incoming(|_, m| {
        if m["method"] == "session/list" {
            vec![refusal(&m, -32601)]
        } else {
            vec![Handle(m)]
        }
    }),
    fault(
        "delete-keeps",
        "Answers session/delete and still lists the session.",
    )
    .incoming(|_, m| pretend(m, "session/delete")),
    fault(
        "delete-unknown-fails",
        "Refuses to delete a session that does not exist.",
    )
    .incoming(|memory, m| {
        let unknown = !memory.held.contains(&m["params"]["sessionId"]);
        if m["method"] == "session/delete" && unknown {
            vec![refusal(&m, -32002)]
        } else {
            vec![Handle(m)]
        }
    })
    .outgoing(|memory, m| {
        if answers(memory, &m, "session/new") {
            memory.held.push(m["result"]["sessionId"].clone());
        }
        vec![Write(m)]
    }),
    fault(
        "close-keeps-turn",
        "Lets the turn of a session run on after session/close.",
    )
    .incoming(|_, m| pretend(m, "session/close")),
    fault(
        "one-at-a-time",
        "Handles no request while a turn is running.",
    )
    .incoming(|memory, m| {
        if is_request(&m) && !memory.note.is_null() {
            memory.held.push(m);
            return vec![];
        }
        if m["method"] == "session/prompt" {
            memory.note = json!(true);
        }
        vec![Handle(m)]
    })
    .outgoing(|memory, m| {
        if memory.answered(&m) != "session/prompt" {
            return vec![Write(m)];
        }
        memory.note = Value::Null;
        // Refused rather than handled late, so that nothing is lost.
        let held: Vec<Value> = memory.held.drain(..).collect();
        [Write(m)]
            .into_iter()
            .chain(held.iter().map(|late| refusal(late, -32603)))
            .collect()
    }),
    fault(
        "mode-not-applied",
        "Answers session/set_mode and keeps the mode.",
    )
    .incoming(|_, m| pretend(m, "session/set_mode")),
    fault(
        "mode-update-missing",
        "Changes the mode by its option without a current_mode_update.",
    )
    .outgoing(|_, m| {
        if kind(&m) == "current_mode_update" {
            vec![]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "unknown-mode-accepted",
        "Accepts a mode that it has not offered.",
    )
    .outgoing(|memory, m| {
        let refused = memory.answered(&m) == "session/set_mode" && m["error"]["code"] == -32602;
        if refused {
            vec![success(&m, json!({}))]
        } else {
            vec![Write(m)]
        }
    }),
    fault(
        "option-response-partial",
        "Answers session/set_config_option with the changed option alone.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/set_config_option")
            && let Some(options) = m["result"]["configOptions"].as_array_mut()
        {
            options.truncate(1);
        }
        vec![Write(m)]
    }),
    fault(
        "option-response-stale",
        "Answers session/set_config_option with the values before the change.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            memory.note = m["result"]["configOptions"].clone();
        }
        if answers(memory, &m, "session/set_config_option") {
            m["result"]["configOptions"] = memory.note.clone();
        }
        vec![Write(m)]
    }),
    fault(
        "option-value-unlisted",
        "Has a current value that is none of the option's values.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") {
            m["result"]["configOptions"][1]["currentValue"] = json!("default");
        }
        vec![Write(m)]
    }),
    fault(
        "boolean-option-undeclared",
        "Has a boolean option without the client's capability for it.",
    )
    .outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new")
            && let Some(options) = m["result"]["configOptions"].as_array_mut()
        {
            options.push(
                json!({"id": "brave", "name": "Brave", "type": "boolean", "currentValue": true}),
            );
        }
        vec![Write(m)]
    }),
];
