//! Agents of the draft of version 2 with one defect each; they speak version 1 as well.

use serde_json::{Value, json};

use crate::connection::Step::{Handle, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{kind, refusal, success, update};

/// The state that `message` reports.
fn state(message: &Value) -> &str {
    message["params"]["update"]["state"]
        .as_str()
        .unwrap_or_default()
}

pub(crate) static AGENTS_V2: &[Fault] = &[
    fault("v2-base", "No defect."),
    fault("v2-info-missing", "Answers initialize without `info`.").outgoing(|_, mut m| {
        if let Some(result) = m["result"].as_object_mut() {
            result.remove("info");
        }
        vec![Write(m)]
    }),
    fault("v2-boolean-capability", "Declares session/delete with `true` instead of an object.").outgoing(|_, mut m| {
        if m["result"]["capabilities"].is_object() {
            m["result"]["capabilities"]["session"]["delete"] = json!(true);
        }
        vec![Write(m)]
    }),
    fault("v2-only-newest", "Answers initialize of a client of version 1 with version 2.").incoming(|_, mut m| {
        if m["method"] == "initialize" && m["params"]["protocolVersion"] == 1 {
            m["params"]["protocolVersion"] = json!(2);
        }
        vec![Handle(m)]
    }),
    fault("v2-prompt-answered-at-end", "Answers session/prompt when the turn ends, as in version 1.").outgoing(|memory, m| {
        if memory.answered(&m) == "session/prompt" && m.get("result").is_some() {
            memory.held.push(m);
            return vec![];
        }
        if state(&m) != "idle" {
            return vec![Write(m)];
        }
        memory.held.drain(..).chain([m]).map(Write).collect()
    }),
    fault("v2-stop-reason-in-response", "Answers session/prompt with a stop reason, as in version 1.").outgoing(|memory, mut m| {
        if memory.answered(&m) == "session/prompt" && m["result"].is_object() {
            m["result"]["stopReason"] = json!("end_turn");
        }
        vec![Write(m)]
    }),
    fault("v2-idle-missing", "Never reports `idle`.").outgoing(|_, m| {
        if state(&m) == "idle" { vec![] } else { vec![Write(m)] }
    }),
    fault("v2-running-missing", "Never reports `running`.").outgoing(|_, m| {
        if state(&m) == "running" { vec![] } else { vec![Write(m)] }
    }),
    fault("v2-stop-reason-missing", "Reports `idle` at the end of a turn without a stop reason.").outgoing(|_, mut m| {
        if state(&m) == "idle"
            && let Some(members) = m["params"]["update"].as_object_mut()
        {
            members.remove("stopReason");
        }
        vec![Write(m)]
    }),
    fault("v2-idle-early", "Reports `idle` before the text of the turn.").outgoing(|memory, m| {
        if kind(&m) == "agent_message_chunk" {
            memory.held.push(m);
            return vec![];
        }
        match state(&m) {
            "idle" => [m].into_iter().chain(memory.held.drain(..)).map(Write).collect(),
            _ => vec![Write(m)],
        }
    }),
    fault("v2-message-id-missing", "Sends message chunks without a messageId.").outgoing(|_, mut m| {
        if kind(&m) == "agent_message_chunk"
            && let Some(members) = m["params"]["update"].as_object_mut()
        {
            members.remove("messageId");
        }
        vec![Write(m)]
    }),
    fault("v2-user-message-missing", "Never reports the user's message.").outgoing(|_, m| {
        if kind(&m) == "user_message_chunk" { vec![] } else { vec![Write(m)] }
    }),
    fault("v2-tool-call", "Announces tool calls with `tool_call`, which version 2 no longer has.").outgoing(|_, mut m| {
        if m["params"]["update"]["status"] == "pending" {
            m["params"]["update"]["sessionUpdate"] = json!("tool_call");
        }
        vec![Write(m)]
    }),
    fault("v2-plan", "Sends `plan`, which version 2 no longer has.").outgoing(|_, mut m| {
        if kind(&m) == "plan_update" {
            let entries = m["params"]["update"]["plan"]["entries"].take();
            m["params"]["update"] = json!({"sessionUpdate": "plan", "entries": entries});
        }
        vec![Write(m)]
    }),
    fault("v2-cancel-ends-turn", "Reports `end_turn` for a turn that was cancelled.").outgoing(|_, mut m| {
        if m["params"]["update"]["stopReason"] == "cancelled" {
            m["params"]["update"]["stopReason"] = json!("end_turn");
        }
        vec![Write(m)]
    }),
    fault("v2-update-after-cancelled", "Sends text of a cancelled turn after `idle`.").outgoing(|_, m| {
        if m["params"]["update"]["stopReason"] != "cancelled" {
            return vec![Write(m)];
        }
        let content = json!({"type": "text", "text": "stopped"});
        let late = json!({"sessionUpdate": "agent_message_chunk", "messageId": "late", "content": content});
        let session = m["params"]["sessionId"].clone();
        vec![Write(m), update(&session, late)]
    }),
    fault("v2-unknown-outcome-approves", "Takes a permission outcome that it does not know for approval.").incoming(|_, mut m| {
        let outcome = &m["result"]["outcome"]["outcome"];
        if outcome.is_string() && outcome != "cancelled" && outcome != "selected" {
            m["result"]["outcome"] = json!({"outcome": "selected", "optionId": "allow-once"});
        }
        vec![Handle(m)]
    }),
    fault("v2-resume-replays", "Replays the conversation when session/resume does not ask for it.").incoming(|_, mut m| {
        if m["method"] == "session/resume" && m["params"]["replayFrom"].is_null() {
            m["params"]["replayFrom"] = json!({"type": "start"});
        }
        vec![Handle(m)]
    }),
    fault("v2-replay-missing", "Ignores `replayFrom` of session/resume.").incoming(|_, mut m| {
        if m["method"] == "session/resume" {
            m["params"]["replayFrom"] = Value::Null;
        }
        vec![Handle(m)]
    }),
    fault("v2-replay-from-unknown", "Replays from the start for a `replayFrom` that it does not know.").incoming(|_, mut m| {
        if m["params"]["replayFrom"].is_object() {
            m["params"]["replayFrom"] = json!({"type": "start"});
        }
        vec![Handle(m)]
    }),
    fault("v2-close-refused", "Answers session/close with -32601, although all agents need it.").incoming(|_, m| {
        if m["method"] == "session/close" { vec![refusal(&m, -32601)] } else { vec![Handle(m)] }
    }),
    fault("v2-load-answered", "Answers session/load, which version 2 no longer has, with a result.").incoming(|memory, m| {
        match m["method"].as_str() {
            Some("initialize") => memory.note = m["params"]["protocolVersion"].clone(),
            Some("session/load") if memory.note == 2 => return vec![success(&m, json!({}))],
            _ => {}
        }
        vec![Handle(m)]
    }),
    fault("v2-mcp-required", "Refuses session/new without `mcpServers`.").incoming(|_, m| {
        let missing = m["method"] == "session/new" && m["params"].get("mcpServers").is_none();
        if missing { vec![refusal(&m, -32602)] } else { vec![Handle(m)] }
    }),
];
