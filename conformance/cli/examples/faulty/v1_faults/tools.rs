//! Agents with a defect in tool calls, permission, or requests to the client.

use serde_json::json;

use crate::connection::Step::{Handle, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{declare, kind, update};

pub(crate) static TOOLS: &[Fault] = &[
    fault("tool-call-unfinished", "Never sends the final status of a tool call.").outgoing(|_, m| {
        let status = m["params"]["update"]["status"].as_str();
        if matches!(status, Some("completed" | "failed")) && kind(&m) == "tool_call_update" {
            return vec![];
        }
        vec![Write(m)]
    }),
    fault("tool-call-unannounced", "Sends updates of a tool call without the tool_call before them.").outgoing(|_, m| {
        if kind(&m) == "tool_call" { vec![] } else { vec![Write(m)] }
    }),
    fault("tool-call-restarts", "Sends `in_progress` for a tool call that has completed.").outgoing(|_, m| {
        if m["params"]["update"]["status"] != "completed" || kind(&m) != "tool_call_update" {
            return vec![Write(m)];
        }
        let mut again = m.clone();
        again["params"]["update"]["status"] = json!("in_progress");
        vec![Write(m), Write(again)]
    }),
    fault("tool-call-id-reused", "Gives the tool calls of all turns the same id.").outgoing(|_, mut m| {
        if kind(&m).starts_with("tool_call") {
            m["params"]["update"]["toolCallId"] = json!("call");
        }
        if m["params"]["toolCall"].is_object() {
            m["params"]["toolCall"]["toolCallId"] = json!("call");
        }
        vec![Write(m)]
    }),
    fault("relative-location", "Reports the locations of tool calls with relative paths.").outgoing(|_, mut m| {
        for location in m["params"]["update"]["locations"].as_array_mut().into_iter().flatten() {
            location["path"] = json!(location["path"].as_str().unwrap_or_default().trim_start_matches('/'));
        }
        vec![Write(m)]
    }),
    fault("line-zero", "Reports the first line of a file as line 0.").outgoing(|_, mut m| {
        for location in m["params"]["update"]["locations"].as_array_mut().into_iter().flatten() {
            location["line"] = json!(0);
        }
        vec![Write(m)]
    }),
    fault("relative-diff", "Reports diffs with relative paths.").outgoing(|_, mut m| {
        for content in m["params"]["update"]["content"].as_array_mut().into_iter().flatten() {
            if content["type"] == "diff" {
                content["path"] = json!("hello.txt");
            }
        }
        vec![Write(m)]
    }),
    fault("permission-cancelled-ignored", "Runs the tool when the permission outcome is `cancelled`.").incoming(|_, mut m| {
        if m["result"]["outcome"]["outcome"] == "cancelled" {
            m["result"]["outcome"] = json!({"outcome": "selected", "optionId": "allow-once"});
        }
        vec![Handle(m)]
    }),
    fault("rejected-tool-runs", "Runs a tool that the user has rejected.").incoming(|_, mut m| {
        if m["result"]["outcome"]["optionId"] == "reject-once" {
            m["result"]["outcome"]["optionId"] = json!("allow-once");
        }
        vec![Handle(m)]
    }),
    fault("runs-before-permission", "Reports a tool as completed before it asks for permission.").outgoing(|memory, m| {
        let options = m["params"]["options"].is_array();
        let call = json!({"sessionUpdate": "tool_call_update", "status": "completed",
            "toolCallId": m["params"]["toolCall"]["toolCallId"]});
        if options {
            memory.note = m["params"]["sessionId"].clone();
            return vec![update(&memory.note, call), Write(m)];
        }
        let status = kind(&m) == "tool_call_update" && !memory.note.is_null();
        if status { vec![] } else { vec![Write(m)] }
    }),
    fault("same-option-ids", "Gives all permission options the same id.").outgoing(|_, mut m| {
        if m["method"] == "session/request_permission" {
            for option in m["params"]["options"].as_array_mut().into_iter().flatten() {
                option["optionId"] = json!("allow-once");
            }
        }
        vec![Write(m)]
    }),
    fault("no-options", "Asks for permission without an option.").outgoing(|_, mut m| {
        if m["method"] == "session/request_permission" {
            m["params"]["options"] = json!([]);
        }
        vec![Write(m)]
    }),
    fault("relative-read-path", "Reads files by a relative path.").outgoing(|_, mut m| {
        if m["method"] == "fs/read_text_file" {
            m["params"]["path"] = json!("input.txt");
        }
        vec![Write(m)]
    }),
    fault("read-line-zero", "Reads files from line 0.").outgoing(|_, mut m| {
        if m["method"] == "fs/read_text_file" {
            m["params"]["line"] = json!(0);
        }
        vec![Write(m)]
    }),
    fault("undeclared-read", "Reads files of a client that has not declared it.").incoming(|_, m| declare(m, ["fs", "readTextFile"], json!(true))),
    fault("undeclared-write", "Writes files of a client that has not declared it.").incoming(|_, m| declare(m, ["fs", "writeTextFile"], json!(true))),
    fault("undeclared-terminal", "Uses terminals of a client that has not declared them.").incoming(|_, mut m| {
        if m["method"] == "initialize" {
            m["params"]["clientCapabilities"]["terminal"] = json!(true);
        }
        vec![Handle(m)]
    }),
    fault("undeclared-form", "Asks with a form a client that has not declared forms.").incoming(|_, m| declare(m, ["elicitation", "form"], json!({}))),
    fault("empty-elicitation-is-form", "Takes an empty capability `elicitation` for forms.").incoming(|_, m| {
        match m["params"]["clientCapabilities"]["elicitation"] == json!({}) {
            true => declare(m, ["elicitation", "form"], json!({})),
            false => vec![Handle(m)],
        }
    }),
    fault("file-error-hangs", "Never ends a turn after the client has refused to read a file.").incoming(|memory, m| {
        let lost = m.get("error").is_some() && memory.asked(&m).starts_with("fs/");
        if lost { vec![] } else { vec![Handle(m)] }
    }),
    fault("terminal-leaked", "Never releases its terminals.").outgoing(|_, m| match m["method"] == "terminal/release" {
        true => vec![Handle(json!({"jsonrpc": "2.0", "id": m["id"], "result": {}}))],
        false => vec![Write(m)],
    }),
    fault("terminal-used-after-release", "Asks for the output of a terminal after it was released.").outgoing(|_, m| {
        if m["method"] != "terminal/release" {
            return vec![Write(m)];
        }
        let late = json!({"jsonrpc": "2.0", "id": 1_000_000, "method": "terminal/output", "params": m["params"]});
        vec![Write(m), Write(late)]
    }),
    fault("own-request-id-reused", "Sends two requests with one id while both are pending.").outgoing(|_, m| {
        if m["method"] != "terminal/wait_for_exit" {
            return vec![Write(m)];
        }
        let other = json!({"jsonrpc": "2.0", "id": m["id"], "method": "terminal/output", "params": m["params"]});
        vec![Write(m), Write(other)]
    }),
    fault("form-secret", "Asks for a password with a form.").outgoing(|_, mut m| {
        if m["params"]["mode"] == "form" {
            m["params"]["message"] = json!("What is your password?");
            m["params"]["requestedSchema"]["properties"] = json!({"password": {"type": "string"}});
        }
        vec![Write(m)]
    }),
];
