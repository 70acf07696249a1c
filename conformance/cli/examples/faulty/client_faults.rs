//! Clients of version 1 with one defect each.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::connection::Step::{Handle, Raw, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{kind, refusal, success};

const PICTURE: &[u8] = include_bytes!("../../../src/requirements/media/picture.png");

pub(crate) static CLIENTS: &[Fault] = &[
    fault("base", "No defect."),
    // Messages
    fault("pretty-printed", "Writes initialize over several lines, indented.").outgoing(|_, m| match m["method"] == "initialize" {
        true => vec![Raw(serde_json::to_string_pretty(&m).unwrap_or_default())],
        false => vec![Write(m)],
    }),
    fault("unknown-method-succeeds", "Answers a method that it does not know with null.").outgoing(|_, m| {
        if m["error"]["code"] == -32601 { vec![success(&m, Value::Null)] } else { vec![Write(m)] }
    }),
    fault("unknown-method-silent", "Never answers a method that it does not know.").outgoing(|_, m| {
        if m["error"]["code"] == -32601 { vec![] } else { vec![Write(m)] }
    }),
    fault("notification-answered", "Answers session/update with a result whose id is null.").incoming(|_, m| match kind(&m) {
        "" => vec![Handle(m)],
        _ => vec![Handle(m), Write(json!({"jsonrpc": "2.0", "id": null, "result": null}))],
    }),
    fault("unknown-update-fatal", "Exits when it does not know the kind of an update.").incoming(|_, m| {
        let known = ["", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call",
            "tool_call_update", "plan", "available_commands_update", "current_mode_update",
            "config_option_update", "session_info_update", "usage_update"];
        if !known.contains(&kind(&m)) {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    fault("unknown-notification-fatal", "Exits when it does not know a notification.").incoming(|_, m| {
        let other = m["method"].as_str().is_some_and(|method| method != "session/update");
        if other && m.get("id").is_none() {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    fault("meta-fatal", "Exits when an update has a member `_meta`.").incoming(|_, m| {
        if m["params"]["update"].get("_meta").is_some() {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    fault("custom-root-field", "Adds a field of its own to the root of session/new.").outgoing(|_, mut m| {
        if m["method"] == "session/new" {
            m["params"]["editor"] = json!("faulty");
        }
        vec![Write(m)]
    }),
    fault("own-request-id-reused", "Sends session/new twice with one id while both are pending.").outgoing(|_, m| match m["method"] == "session/new" {
        true => vec![Write(m.clone()), Write(m)],
        false => vec![Write(m)],
    }),
    // Initialization and sessions
    fault("initializes-twice", "Sends initialize a second time before it opens a session.").outgoing(|memory, m| {
        if m["method"] == "initialize" {
            memory.note = m.clone();
        }
        match m["method"] == "session/new" {
            true => {
                memory.note["id"] = json!("again");
                vec![Write(memory.note.clone()), Write(m)]
            }
            false => vec![Write(m)],
        }
    }),
    fault("opens-before-initialized", "Sends session/new before initialize is answered.").outgoing(|memory, m| match m["method"].as_str() {
        Some("initialize") => {
            let cwd = std::env::current_dir().unwrap_or_default();
            let params = json!({"cwd": cwd.to_string_lossy(), "mcpServers": []});
            vec![Write(m), Write(json!({"jsonrpc": "2.0", "id": "early", "method": "session/new", "params": params}))]
        }
        Some("session/new") => {
            memory.held.push(m["id"].clone());
            vec![Write(m)]
        }
        _ => vec![Write(m)],
    }),
    fault("other-version-accepted", "Goes on when the agent chooses a version that it does not know.").incoming(|_, mut m| {
        if m["result"]["protocolVersion"].is_number() {
            m["result"]["protocolVersion"] = json!(1);
        }
        vec![Handle(m)]
    }),
    fault("relative-cwd", "Opens sessions with the working directory `.`.").outgoing(|_, mut m| {
        if m["method"] == "session/new" {
            m["params"]["cwd"] = json!(".");
        }
        vec![Write(m)]
    }),
    fault("loads-undeclared", "Calls session/load without the capability `loadSession`.").outgoing(|_, m| {
        if m["method"] != "session/new" {
            return vec![Write(m)];
        }
        let mut load = m.clone();
        load["id"] = json!("load");
        load["method"] = json!("session/load");
        load["params"]["sessionId"] = json!("yesterday");
        vec![Write(load), Write(m)]
    }),
    fault("lists-undeclared", "Calls session/list without the capability for it.").outgoing(|_, m| {
        let list = json!({"jsonrpc": "2.0", "id": "list", "method": "session/list", "params": {}});
        if m["method"] == "session/new" { vec![Write(list), Write(m)] } else { vec![Write(m)] }
    }),
    fault("http-undeclared", "Names an MCP server over HTTP without the capability for it.").outgoing(|_, mut m| {
        if m["method"] == "session/new" {
            m["params"]["mcpServers"] = json!([{"type": "http", "name": "tools", "url": "http://127.0.0.1:1/", "headers": []}]);
        }
        vec![Write(m)]
    }),
    fault("image-undeclared", "Sends an image in the prompt without the capability for it.").outgoing(|_, mut m| {
        if let Some(blocks) = m["params"]["prompt"].as_array_mut() {
            let data = BASE64_STANDARD.encode(PICTURE);
            blocks.push(json!({"type": "image", "data": data, "mimeType": "image/png"}));
        }
        vec![Write(m)]
    }),
    // Permission and cancellation
    fault("option-not-offered", "Selects a permission option that was not offered.").outgoing(|_, mut m| {
        if m["result"]["outcome"]["optionId"].is_string() {
            m["result"]["outcome"]["optionId"] = json!("yes");
        }
        vec![Write(m)]
    }),
    fault("allows-after-cancel", "Grants a permission request of a turn that it has cancelled.").incoming(|memory, m| {
        if m["method"] == "session/request_permission" {
            memory.note = m["params"]["options"][0]["optionId"].clone();
        }
        vec![Handle(m)]
    }).outgoing(|memory, mut m| {
        if m["result"]["outcome"]["outcome"] == "cancelled" {
            m["result"]["outcome"] = json!({"outcome": "selected", "optionId": memory.note});
        }
        vec![Write(m)]
    }),
    fault("cancel-leaves-permission", "Never answers a permission request of a turn that it has cancelled.").outgoing(|_, m| {
        if m["result"]["outcome"]["outcome"] == "cancelled" { vec![] } else { vec![Write(m)] }
    }),
    fault("cancel-as-request", "Sends session/cancel as a request with an id.").outgoing(|_, mut m| {
        if m["method"] == "session/cancel" {
            m["id"] = json!("cancel");
        }
        vec![Write(m)]
    }),
    fault("cancel-by-exit", "Exits at once when the user cancels.").outgoing(|_, m| {
        if m["method"] == "session/cancel" {
            std::process::exit(130);
        }
        vec![Write(m)]
    }),
    fault("late-update-fatal", "Exits when an update comes after it has sent session/cancel.").outgoing(|memory, m| {
        if m["method"] == "session/cancel" {
            memory.note = json!(true);
        }
        vec![Write(m)]
    }).incoming(|memory, m| {
        if memory.note == true && !kind(&m).is_empty() {
            std::process::exit(1);
        }
        vec![Handle(m)]
    }),
    // Files
    fault("read-window", "Counts the lines of fs/read_text_file from 0.").incoming(|_, mut m| {
        if let Some(line) = m["params"]["line"].as_u64() {
            m["params"]["line"] = json!(line + 1);
        }
        vec![Handle(m)]
    }),
    fault("read-ignores-limit", "Ignores the limit of fs/read_text_file.").incoming(|_, mut m| {
        if m["params"]["limit"].is_u64() {
            m["params"]["limit"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault("read-missing-is-empty", "Answers fs/read_text_file of a missing file with an empty text.").outgoing(|memory, m| {
        let missing = m["error"]["code"] == -32002 && memory.answered(&m) == "fs/read_text_file";
        if missing { vec![success(&m, json!({"content": ""}))] } else { vec![Write(m)] }
    }),
    fault("write-needs-file", "Refuses fs/write_text_file of a file that does not exist.").incoming(|_, m| {
        let path = m["params"]["path"].as_str().unwrap_or_default();
        let missing = m["method"] == "fs/write_text_file" && !std::path::Path::new(path).exists();
        if missing { vec![refusal(&m, -32002)] } else { vec![Handle(m)] }
    }),
    fault("write-appends-newline", "Writes a newline after the content of fs/write_text_file.").incoming(|_, mut m| {
        if let Some(content) = m["params"]["content"].as_str().filter(|_| m["method"] == "fs/write_text_file") {
            m["params"]["content"] = json!(format!("{content}\n"));
        }
        vec![Handle(m)]
    }),
    fault("relative-path-accepted", "Reads a relative path from its own directory.").incoming(|_, mut m| {
        let path = m["params"]["path"].as_str().filter(|path| !path.starts_with('/'));
        if let (Some(path), Ok(folder)) = (path, std::env::current_dir()) {
            m["params"]["path"] = json!(folder.join(path).to_string_lossy());
        }
        vec![Handle(m)]
    }),
    // Terminals
    fault("terminal-limit-ignored", "Ignores `outputByteLimit`.").incoming(|_, mut m| {
        if m["method"] == "terminal/create" {
            m["params"]["outputByteLimit"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault("terminal-cwd-ignored", "Runs the commands of terminals in its own directory.").incoming(|_, mut m| {
        if m["method"] == "terminal/create" {
            m["params"]["cwd"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault("terminal-env-ignored", "Ignores the environment of terminals.").incoming(|_, mut m| {
        if m["method"] == "terminal/create" {
            m["params"]["env"] = json!([]);
        }
        vec![Handle(m)]
    }),
    fault("release-keeps", "Answers terminal/release and keeps the terminal.").incoming(|_, m| match m["method"] == "terminal/release" {
        true => vec![success(&m, json!({}))],
        false => vec![Handle(m)],
    }),
    fault("kill-releases", "Forgets a terminal when it is killed.").incoming(|_, mut m| {
        if m["method"] == "terminal/kill" {
            m["method"] = json!("terminal/release");
        }
        vec![Handle(m)]
    }),
    fault("kill-does-nothing", "Answers terminal/kill and lets the command run.").incoming(|_, m| match m["method"] == "terminal/kill" {
        true => vec![success(&m, json!({}))],
        false => vec![Handle(m)],
    }),
    fault("wait-returns-early", "Answers terminal/wait_for_exit before the command has exited.").incoming(|_, m| match m["method"] == "terminal/wait_for_exit" {
        true => vec![success(&m, json!({"exitCode": 0}))],
        false => vec![Handle(m)],
    }),
    fault("wait-blocks", "Answers nothing while terminal/wait_for_exit is pending.").incoming(|memory, m| {
        if memory.note == true && m.get("method").is_some() && m.get("id").is_some() {
            memory.held.push(m);
            return vec![];
        }
        if m["method"] == "terminal/wait_for_exit" {
            memory.note = json!(true);
        }
        vec![Handle(m)]
    }).outgoing(|memory, m| {
        if memory.answered(&m) != "terminal/wait_for_exit" {
            return vec![Write(m)];
        }
        memory.note = Value::Null;
        let held: Vec<Value> = memory.held.drain(..).collect();
        [Write(m)].into_iter().chain(held.iter().map(|late| refusal(late, -32603))).collect()
    }),
    fault("exit-code-missing", "Reports the exit of a command without its code.").outgoing(|memory, mut m| {
        if memory.answered(&m) == "terminal/wait_for_exit" && m["result"].is_object() {
            m["result"]["exitCode"] = Value::Null;
        }
        vec![Write(m)]
    }),
];
