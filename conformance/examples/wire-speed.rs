//! CPU time of judging messages, beside that of parsing them.
//!
//! `cargo run --release -p acp-conformance --example wire-speed [SECONDS]` prints a
//! Markdown table: nanoseconds of CPU a message, the best of five rounds. Columns:
//! the text into a `serde_json::Value`; into the SDK's types; judging a `Value`;
//! text to verdict, which is parsing and judging; and what the proxy's judge does,
//! which is text to verdict, secrets taken out and a transcript written (to
//! nowhere). Linux only: it reads its CPU time from `/proc`.
#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails is none")]

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use acp_conformance::proxy::Recorder;
use acp_conformance::wire::{Party, Schema, Tracker};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What an agent streams in a turn: mostly text.
const MIX: [(&str, usize); 7] = [
    ("agent_message_chunk", 80),
    ("agent_thought_chunk", 8),
    ("tool_call", 3),
    ("tool_call_update", 6),
    ("plan", 1),
    ("usage_update", 1),
    ("available_commands_update", 1),
];

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let round = Duration::from_secs_f64(seconds.unwrap_or(0.2) / 5.0);
    let updates = updates();
    let schema = Arc::new(Schema::v1().unwrap());
    println!(
        "| update | bytes | Value | typed | judge | text to verdict | proxy's judge | verdict/Value | verdict/typed |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, text) in &updates {
        row(name, &[text], &schema, round);
    }
    let mut mix = Vec::new();
    for (name, count) in MIX {
        let found = updates.iter().find(|(known, _)| *known == name).unwrap();
        mix.extend(std::iter::repeat_n(&found.1, count));
    }
    row("typical mix", &mix, &schema, round);
}

fn row(name: &str, texts: &[&String], schema: &Arc<Schema>, round: Duration) {
    let values: Vec<Value> = texts.iter().map(|text| parse(text)).collect();
    let value = cpu(texts, round, |text| drop(black_box(parse(text))));
    let typed = cpu(texts, round, |text| drop(black_box(parse_typed(text))));
    let mut tracker = Tracker::new(schema.clone());
    let mut judge = |value: &Value| {
        let observed = tracker.observe(Party::Agent, 0, value);
        assert!(observed.findings.is_empty(), "{observed:?}");
    };
    let judged = cpu(&values, round, &mut judge);
    let verdict = cpu(texts, round, |text| judge(&parse(text)));
    let findings = Box::new(|finding: &_| panic!("{finding:?}"));
    let log = Some(Box::new(io::sink()) as _);
    let mut recorder = Recorder::new(schema.clone(), log, true, findings);
    let now = SystemTime::now();
    let lines: Vec<Vec<u8>> = texts
        .iter()
        .map(|text| format!("{text}\n").into())
        .collect();
    let recorded = cpu(&lines, round, |line| {
        recorder.bytes(Party::Agent, now, line)
    });
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>() / texts.len();
    println!(
        "| {name} | {bytes} | {value:.0} | {typed:.0} | {judged:.0} | {verdict:.0} ({:.0} a second) | {recorded:.0} ({:.0}) | {:.2} | {:.2} |",
        1e9 / verdict,
        1e9 / recorded,
        verdict / value,
        verdict / typed
    );
}

/// CPU nanoseconds an item: the best of five rounds, which is the one that other
/// work on the machine has disturbed least.
fn cpu<T>(items: &[T], round: Duration, mut act: impl FnMut(&T)) -> f64 {
    items.iter().for_each(&mut act);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let (started, before) = (Instant::now(), used());
        let mut done = 0;
        while started.elapsed() < round {
            for _ in 0..1 + 100 / items.len() {
                items.iter().for_each(&mut act);
                done += items.len();
            }
        }
        best = best.min((used() - before) / done as f64);
    }
    best
}

/// CPU time of this thread in nanoseconds.
fn used() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// As a connection does it: the envelope is borrowed, the params become their type.
fn parse_typed(text: &str) -> acp_sdk::v1::SessionNotification {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        jsonrpc: &'a str,
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).unwrap();
    black_box((envelope.jsonrpc, envelope.method));
    serde_json::from_str(envelope.params.get()).unwrap()
}

/// A message of each kind, as agents send them.
fn updates() -> Vec<(&'static str, String)> {
    let words = "the quick brown fox jumps over the lazy dog, and so on it goes";
    let text = |text: &str| json!({"type": "text", "text": text});
    let diff = json!({"type": "diff", "path": "/workspace/src/main.rs",
        "oldText": "fn main() {}\n".repeat(20), "newText": "fn main() { run() }\n".repeat(20)});
    let entry = json!({"content": words, "priority": "high", "status": "pending"});
    let command = json!({"name": "review", "description": words, "input": {"hint": "a branch"}});
    let updates = [
        json!({"sessionUpdate": "agent_message_chunk", "content": text(words)}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": text(words)}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Edit main.rs",
            "kind": "edit", "status": "in_progress",
            "content": [{"type": "content", "content": text(words)}, diff],
            "locations": [{"path": "/workspace/src/main.rs", "line": 12}],
            "rawInput": {"path": "/workspace/src/main.rs", "count": 3}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed"}),
        json!({"sessionUpdate": "plan", "entries": vec![entry; 5]}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": vec![command; 5]}),
        json!({"sessionUpdate": "usage_update", "used": 53000, "size": 200_000,
            "cost": {"amount": 0.045, "currency": "USD"}}),
    ];
    updates
        .into_iter()
        .map(|update| {
            let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
            let params = json!({"sessionId": "sess_000000000001", "update": update});
            let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            let name = MIX.iter().find(|(name, _)| *name == kind).unwrap().0;
            (name, message.to_string())
        })
        .collect()
}
