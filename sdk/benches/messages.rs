//! Parsing and serialising each kind of message, beside the official crate's types.
//!
//! `cargo bench -p acp-sdk --bench messages`; add a part of a name to run only that.

use std::hint::black_box;

use acp_sdk::runtime::{Shaped, decode, encode};
use acp_sdk::v1 as ours;
use agent_client_protocol_schema::v1 as official;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

fn update(update: Value) -> Value {
    json!({"sessionId": "sess_000000000001", "update": update})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// `session/update`, by kind; the tag comes first, as agents write it.
fn updates() -> Vec<(&'static str, Value)> {
    let words = "the quick brown fox jumps over the lazy dog, and so on it goes";
    let diff = json!({"type": "diff", "path": "/workspace/src/main.rs",
        "oldText": "fn main() {}\n".repeat(20), "newText": "fn main() { run() }\n".repeat(20)});
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Edit main.rs",
        "kind": "edit", "status": "in_progress",
        "content": [{"type": "content", "content": text(words)}, diff],
        "locations": [{"path": "/workspace/src/main.rs", "line": 12}],
        "rawInput": {"path": "/workspace/src/main.rs", "count": 3}
    });
    let entry = json!({"content": words, "priority": "high", "status": "pending"});
    let command = json!({"name": "review", "description": words, "input": {"hint": "a branch"}});
    let large = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1",
        "status": "completed",
        "content": [{"type": "content", "content": text(&format!("{words}\n").repeat(1200))}]});
    vec![
        ("agent_message_chunk", json!({"sessionUpdate": "agent_message_chunk", "content": text(words)})),
        ("agent_thought_chunk", json!({"sessionUpdate": "agent_thought_chunk", "content": text(words)})),
        ("tool_call", call),
        ("tool_call_update", json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed"})),
        ("tool_call_update, 76 kB", large),
        ("plan", json!({"sessionUpdate": "plan", "entries": vec![entry; 5]})),
        ("available_commands_update", json!({"sessionUpdate": "available_commands_update", "availableCommands": vec![command; 5]})),
        ("current_mode_update", json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})),
        ("usage_update", json!({"sessionUpdate": "usage_update", "used": 53000, "size": 200_000, "cost": {"amount": 0.045, "currency": "USD"}})),
    ]
    .into_iter()
    .map(|(name, value)| (name, update(value)))
    .collect()
}

fn prompt() -> Value {
    json!({"sessionId": "sess_000000000001", "prompt": [
        text("Look at this file, please."),
        {"type": "resource", "resource": {"uri": "file:///workspace/src/main.rs",
            "mimeType": "text/x-rust", "text": "fn main() {}\n".repeat(20)}}]})
}

fn permission() -> Value {
    json!({"sessionId": "sess_000000000001",
        "toolCall": {"toolCallId": "call_1", "title": "Run a command", "kind": "execute"},
        "options": [
            {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"}]})
}

/// Measures both crates on one message.
fn compare<O, T>(c: &mut Criterion, name: &str, message: &Value)
where
    O: Serialize + DeserializeOwned + Shaped,
    T: Serialize + DeserializeOwned,
{
    let text = message.to_string();
    let mut parse = c.benchmark_group(format!("parse {name}"));
    parse.throughput(Throughput::Bytes(text.len() as u64));
    // As a connection reads it, and as whoever has only serde.
    parse.bench_function("ours", |b| {
        b.iter(|| decode::<O>(black_box(&text), &mut |_| {}).expect("the samples are valid"));
    });
    parse.bench_function("ours, by serde_json", |b| {
        b.iter(|| read::<O>(black_box(&text)))
    });
    parse.bench_function("official", |b| b.iter(|| read::<T>(black_box(&text))));
    parse.finish();

    let mut write = c.benchmark_group(format!("serialise {name}"));
    write.throughput(Throughput::Bytes(text.len() as u64));
    // As a connection writes it, and as whoever has only serde.
    let message = read::<O>(&text);
    write.bench_function("ours", |b| {
        let mut buffer = Vec::new();
        b.iter(|| {
            buffer.clear();
            encode(black_box(&message), &mut buffer).expect("messages have a JSON form");
        });
    });
    write.bench_function("ours, by serde_json", |b| serialise(b, &message));
    write.bench_function("official", |b| serialise(b, &read::<T>(&text)));
    write.finish();
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).expect("the samples are valid")
}

fn serialise<T: Serialize>(b: &mut criterion::Bencher<'_>, message: &T) {
    let mut buffer = Vec::new();
    b.iter(|| {
        buffer.clear();
        serde_json::to_writer(&mut buffer, black_box(message)).expect("messages have a JSON form");
    });
}

fn messages(c: &mut Criterion) {
    for (name, message) in updates() {
        compare::<ours::SessionNotification, official::SessionNotification>(c, name, &message);
    }
    compare::<ours::PromptRequest, official::PromptRequest>(c, "session/prompt", &prompt());
    compare::<ours::RequestPermissionRequest, official::RequestPermissionRequest>(
        c,
        "session/request_permission",
        &permission(),
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = messages
}
criterion_main!(benches);
