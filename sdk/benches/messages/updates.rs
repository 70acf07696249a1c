//! `session/update` by kind; the tag comes first, as agents write it.

use acp_sdk::v1 as ours;
use agent_client_protocol_schema::v1 as official;
use criterion::Criterion;
use serde_json::{Value, json};

use crate::{CODE, FILE, SESSION, WORDS, compare, config_options, text};

pub(crate) fn all(c: &mut Criterion) {
    for (name, update) in updates() {
        let message = json!({"sessionId": SESSION, "update": update});
        compare::<ours::SessionNotification, official::SessionNotification>(c, name, &message);
    }
}

fn updates() -> Vec<(&'static str, Value)> {
    let entry = json!({"content": WORDS, "priority": "high", "status": "pending"});
    let command = json!({"name": "review", "description": WORDS, "input": {"hint": "a branch"}});
    vec![
        (
            "user_message_chunk",
            json!({"sessionUpdate": "user_message_chunk", "content": text(WORDS)}),
        ),
        (
            "agent_message_chunk",
            json!({"sessionUpdate": "agent_message_chunk", "content": text(WORDS)}),
        ),
        (
            "agent_thought_chunk",
            json!({"sessionUpdate": "agent_thought_chunk", "content": text(WORDS)}),
        ),
        ("tool_call", tool_call()),
        (
            "tool_call_update",
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed"}),
        ),
        (
            "tool_call_update, 76 kB",
            output(&format!("{WORDS}\n").repeat(1200)),
        ),
        ("tool_call_update, 76 kB of code", output(&CODE.repeat(138))),
        (
            "plan",
            json!({"sessionUpdate": "plan", "entries": vec![entry; 5]}),
        ),
        (
            "available_commands_update",
            json!({"sessionUpdate": "available_commands_update", "availableCommands": vec![command; 5]}),
        ),
        (
            "current_mode_update",
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"}),
        ),
        (
            "config_option_update",
            json!({"sessionUpdate": "config_option_update", "configOptions": config_options()}),
        ),
        (
            "session_info_update",
            json!({"sessionUpdate": "session_info_update", "title": "Mend the parser", "updatedAt": "2026-11-21T18:00:00Z"}),
        ),
        (
            "usage_update",
            json!({"sessionUpdate": "usage_update", "used": 53000, "size": 200_000, "cost": {"amount": 0.045, "currency": "USD"}}),
        ),
        (
            "notice",
            json!({"sessionUpdate": "notice", "severity": "warning", "title": "Slow network", "description": WORDS}),
        ),
        (
            "compaction_update",
            json!({"sessionUpdate": "compaction_update", "compactionId": "comp_1", "status": "completed", "summary": [text(WORDS)]}),
        ),
        (
            "compaction_summary_chunk",
            json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "comp_1", "content": text(WORDS)}),
        ),
    ]
}

fn tool_call() -> Value {
    let diff = json!({"type": "diff", "path": FILE,
        "oldText": "fn main() {}\n".repeat(20), "newText": "fn main() { run() }\n".repeat(20)});
    json!({
        "sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Edit main.rs",
        "kind": "edit", "status": "in_progress",
        "content": [{"type": "content", "content": text(WORDS)}, diff],
        "locations": [{"path": FILE, "line": 12}],
        "rawInput": {"path": FILE, "count": 3}
    })
}

fn output(output: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed",
        "content": [{"type": "content", "content": text(output)}]})
}
