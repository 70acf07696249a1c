//! Agents with a defect in a turn or its cancellation.

use serde_json::{Value, json};

use crate::connection::Step::{Handle, Write};
use crate::connection::{Fault, fault};
use crate::hooks::{answers, hold, kind, refusal, success, update};

pub(crate) static TURNS: &[Fault] = &[
    fault("answers-early", "Sends the text of a turn after the response to session/prompt.").outgoing(|memory, m| {
        let late = kind(&m) == "agent_message_chunk";
        hold(memory, m, late, "session/prompt")
    }),
    fault("unknown-stop-reason", "Ends turns with the stop reason `done`.").outgoing(|_, mut m| {
        if m["result"]["stopReason"] == "end_turn" {
            m["result"]["stopReason"] = json!("done");
        }
        vec![Write(m)]
    }),
    fault("resource-link-refused", "Refuses prompts with a resource link.").incoming(|_, m| {
        let blocks = m["params"]["prompt"].as_array();
        let link = blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "resource_link"));
        if link { vec![refusal(&m, -32602)] } else { vec![Handle(m)] }
    }),
    fault("update-for-other-session", "Sends all updates for the session that was opened first.").outgoing(|memory, mut m| {
        if answers(memory, &m, "session/new") && memory.note.is_null() {
            memory.note = m["result"]["sessionId"].clone();
        }
        if m["method"] == "session/update" {
            m["params"]["sessionId"] = memory.note.clone();
        }
        vec![Write(m)]
    }),
    fault("prompt-of-unknown-session", "Answers a prompt for a session that does not exist with `end_turn`.").outgoing(|memory, m| {
        let unknown = memory.answered(&m) == "session/prompt" && m["error"]["code"] == -32002;
        if unknown { vec![success(&m, json!({"stopReason": "end_turn"}))] } else { vec![Write(m)] }
    }),
    fault("message-id-changes", "Gives every chunk of one message another messageId.").outgoing(|memory, mut m| {
        if kind(&m) == "agent_message_chunk" {
            let next = memory.note.as_u64().unwrap_or_default() + 1;
            memory.note = json!(next);
            m["params"]["update"]["messageId"] = json!(format!("chunk-{next}"));
        }
        vec![Write(m)]
    }),
    fault("message-id-repeats", "Gives the messages of all turns the same messageId.").outgoing(|_, mut m| {
        if kind(&m).ends_with("_message_chunk") {
            m["params"]["update"]["messageId"] = json!("message");
        }
        vec![Write(m)]
    }),
    fault("plan-partial", "Sends only the entries of a plan that have changed.").outgoing(|memory, mut m| {
        if kind(&m) == "plan" {
            let entries = m["params"]["update"]["entries"].take();
            let earlier = std::mem::replace(&mut memory.note, entries.clone());
            let all = entries.as_array().into_iter().flatten();
            let changed: Vec<&Value> = all.filter(|entry| {
                !earlier.as_array().is_some_and(|earlier| earlier.contains(entry))
            }).collect();
            m["params"]["update"]["entries"] = json!(changed);
        }
        vec![Write(m)]
    }),
    fault("cancel-ignored", "Ignores session/cancel.").incoming(|_, m| {
        if m["method"] == "session/cancel" { vec![] } else { vec![Handle(m)] }
    }),
    fault("cancel-is-error", "Answers a cancelled prompt with an error.").outgoing(|_, m| {
        if m["result"]["stopReason"] == "cancelled" { vec![refusal(&m, -32603)] } else { vec![Write(m)] }
    }),
    fault("cancel-ends-turn", "Answers a cancelled prompt with `end_turn`.").outgoing(|_, mut m| {
        if m["result"]["stopReason"] == "cancelled" {
            m["result"]["stopReason"] = json!("end_turn");
        }
        vec![Write(m)]
    }),
    fault("update-after-cancelled", "Sends an update after the response to a cancelled prompt.").outgoing(|memory, m| {
        if m["method"] == "session/update" {
            memory.note = m["params"]["sessionId"].clone();
        }
        let content = json!({"type": "text", "text": "stopped"});
        let late = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        match m["result"]["stopReason"] == "cancelled" {
            true => vec![Write(m), update(&memory.note, late)],
            false => vec![Write(m)],
        }
    }),
    fault("cancels-all-sessions", "Cancels the turns of all sessions when one is cancelled.").incoming(|memory, m| {
        if m["method"] != "session/cancel" {
            return vec![Handle(m)];
        }
        memory.held.iter().map(|session| {
            Handle(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}))
        }).collect()
    }).outgoing(|memory, m| {
        if answers(memory, &m, "session/new") {
            memory.held.push(m["result"]["sessionId"].clone());
        }
        vec![Write(m)]
    }),
    fault("dead-after-cancel", "Refuses every prompt in a session that was cancelled once.").incoming(|memory, m| {
        if m["method"] == "session/cancel" {
            memory.held.push(m["params"]["sessionId"].clone());
        }
        let dead = m["method"] == "session/prompt" && memory.held.contains(&m["params"]["sessionId"]);
        if dead { vec![refusal(&m, -32603)] } else { vec![Handle(m)] }
    }),
    fault("idle-cancel-kept", "Cancels the next turn when session/cancel comes while none is running.").incoming(|memory, m| {
        match m["method"].as_str() {
            Some("session/cancel") => memory.note = json!("cancel"),
            Some("session/prompt") if memory.note == "cancel" => {
                memory.note = Value::Null;
                return vec![success(&m, json!({"stopReason": "cancelled"}))];
            }
            _ => {}
        }
        vec![Handle(m)]
    }).outgoing(|memory, m| {
        if memory.answered(&m) == "session/prompt" {
            memory.note = Value::Null;
        }
        vec![Write(m)]
    }),
    fault("request-cancel-unanswered", "Never answers a request that was cancelled by $/cancel_request.").incoming(|memory, m| {
        if m["method"] == "$/cancel_request" {
            memory.held.push(m["params"]["requestId"].clone());
        }
        vec![Handle(m)]
    }).outgoing(|memory, m| {
        let dropped = m.get("method").is_none() && memory.held.contains(&m["id"]);
        if dropped { vec![] } else { vec![Write(m)] }
    }),
];
