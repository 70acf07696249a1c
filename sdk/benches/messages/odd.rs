//! Messages that the schema tolerates, beside the same ones without the oddity.

use std::hint::black_box;

use acp_sdk::runtime::decode;
use acp_sdk::v1::SessionNotification as Ours;
use agent_client_protocol_schema::v1::SessionNotification as Official;
use criterion::Criterion;
use serde_json::{Value, json};

use crate::{SESSION, WORDS, text};

pub(crate) fn all(c: &mut Criterion) {
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": text(WORDS)});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Edit main.rs",
        "kind": "edit", "content": [{"type": "content", "content": text(WORDS)}]});
    let entry = json!({"content": WORDS, "priority": "high", "status": "pending"});
    let plan = json!({"sessionUpdate": "plan", "entries": vec![entry; 5]});
    let late = json!({"content": text(WORDS), "sessionUpdate": "agent_message_chunk"});
    for (name, sound, odd) in [
        (
            "a `_meta` that is a list",
            &chunk,
            with(&chunk, "/_meta", json!([])),
        ),
        (
            "an unknown update",
            &chunk,
            with(&chunk, "/sessionUpdate", json!("later")),
        ),
        (
            "an unknown kind of tool",
            &call,
            with(&call, "/kind", json!("later")),
        ),
        (
            "a kind of tool that is a number",
            &call,
            with(&call, "/kind", json!(7)),
        ),
        (
            "an item of five that is wrong",
            &plan,
            with(&plan, "/entries/2", json!(7)),
        ),
        ("a tag behind the members", &chunk, late),
    ] {
        measure(c, name, sound, &odd);
    }
}

/// `update` with another value at `pointer`.
fn with(update: &Value, pointer: &str, value: Value) -> Value {
    let mut update = update.clone();
    match update.pointer_mut(pointer) {
        Some(old) => *old = value,
        None => update[&pointer[1..]] = value,
    }
    update
}

fn measure(c: &mut Criterion, name: &str, sound: &Value, odd: &Value) {
    // `to_string` keeps the order of members as they were written.
    let message = |update| format!(r#"{{"sessionId":"{SESSION}","update":{update}}}"#);
    let (sound, odd) = (message(sound), message(odd));
    let mut group = c.benchmark_group(format!("odd {name}"));
    for (which, text) in [("sound", &sound), ("odd", &odd)] {
        group.bench_function(format!("ours, {which}"), |b| {
            b.iter(|| decode::<Ours>(black_box(text), &mut |_| {}).expect("it is tolerated"));
        });
        group.bench_function(format!("official, {which}"), |b| {
            b.iter(|| serde_json::from_str::<Official>(black_box(text)).is_ok());
        });
    }
    group.finish();
}
