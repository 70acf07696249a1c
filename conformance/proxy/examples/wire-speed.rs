//! CPU time of judging messages, beside that of parsing them.
//!
//! `cargo run --release -p acp-conformance-proxy --example wire-speed [SECONDS]` prints a
//! Markdown table: nanoseconds of CPU a message. Columns: the text into a
//! `serde_json::Value`; into the SDK's types; the schema's verdict on a `Value`; text to
//! that verdict; text to verdict with the rules over sequences, which is what `check` does;
//! and what the proxy's judge does, which is all of that, secrets taken out and a
//! transcript written (to nowhere). Then what the last two cost in terms of parsing.
//!
//! The columns are measured in turn, round by round, and the median round counts, so that
//! other work on the machine disturbs all of them alike. Linux only: it reads its CPU time
//! from `/proc`.
#![allow(clippy::print_stdout, reason = "the table is the result")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails is none")]

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use acp_conformance::judge::{Diagnostic, Judge};
use acp_conformance::transcript::Record;
use acp_conformance::wire::{Party, Schema, Tracker};
use acp_conformance_proxy::Recorder;
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

const SESSION: &str = "sess_000000000001";

/// How often each column is measured.
const ROUNDS: usize = 15;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let round = Duration::from_secs_f64(seconds.unwrap_or(0.3) / ROUNDS as f64);
    let updates = updates();
    let schema = Schema::v1().unwrap();
    println!(
        "| update | bytes | Value | typed | schema alone | text to schema | with rules (a second) | proxy's judge (a second) | rules/Value | rules/typed | proxy/Value |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
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
    let lines: Vec<Vec<u8>> = texts
        .iter()
        .map(|text| format!("{text}\n").into())
        .collect();
    let mut tracker = Tracker::new(schema.clone());
    let mut verdict = |value: &Value| {
        let observed = tracker.observe(Party::Agent, 0, value);
        assert!(observed.findings.is_empty(), "{observed:?}");
    };
    let sound = |finding: Diagnostic| panic!("{finding:?}");
    let mut judge = Judge::new(schema.clone(), None);
    let log = Some(Box::new(io::sink()) as _);
    let findings = Box::new(move |finding: &Diagnostic| sound(finding.clone()));
    let mut recorder = Recorder::new(schema.clone(), log, true, findings);
    let now = SystemTime::now();
    for (from, value) in beginning() {
        recorder.bytes(from, now, format!("{value}\n").as_bytes());
        judge.record(1, &Record::Message(from, value), &mut { sound });
    }
    let mut taken: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        let [value, typed, alone, text, rules, proxy] = &mut taken;
        value.push(cpu(texts, round, |text| drop(black_box(parse(text)))));
        typed.push(cpu(texts, round, |text| drop(black_box(parse_typed(text)))));
        alone.push(cpu(&values, round, &mut verdict));
        text.push(cpu(texts, round, |text| verdict(&parse(text))));
        rules.push(cpu(texts, round, |text| {
            let record = Record::Message(Party::Agent, parse(text));
            judge.record(1, &record, &mut { sound });
        }));
        proxy.push(cpu(&lines, round, |line| {
            recorder.bytes(Party::Agent, now, line)
        }));
    }
    let ratio = |above: &[f64], below: &[f64]| {
        let ratios = above.iter().zip(below).map(|(above, below)| above / below);
        median(ratios.collect())
    };
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>() / texts.len();
    let [ref value, ref typed, .., ref rules, ref proxy] = taken;
    let to_value = ratio(rules, value);
    let to_typed = ratio(rules, typed);
    let proxy_to_value = ratio(proxy, value);
    let [value, typed, alone, text, rules, proxy] = taken.map(median);
    println!(
        "| {name} | {bytes} | {value:.0} | {typed:.0} | {alone:.0} | {text:.0} | {rules:.0} ({:.0}) | {proxy:.0} ({:.0}) | {to_value:.2} | {to_typed:.2} | {proxy_to_value:.2} |",
        1e9 / rules,
        1e9 / proxy,
    );
}

/// The handshake and the open turn before a stream of updates: rules look at both.
fn beginning() -> Vec<(Party, Value)> {
    let call = |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let answer = |id: u32, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let info = json!({"name": "measurement", "version": "1"});
    let hello = json!({"protocolVersion": 1, "clientInfo": info});
    let prompt = json!([{"type": "text", "text": "hello"}]);
    vec![
        (Party::Client, call(0, "initialize", hello)),
        (
            Party::Agent,
            answer(0, json!({"protocolVersion": 1, "agentInfo": info})),
        ),
        (
            Party::Client,
            call(
                1,
                "session/new",
                json!({"cwd": "/workspace", "mcpServers": []}),
            ),
        ),
        (Party::Agent, answer(1, json!({"sessionId": SESSION}))),
        (
            Party::Client,
            call(
                2,
                "session/prompt",
                json!({"sessionId": SESSION, "prompt": prompt}),
            ),
        ),
        // So that updates of it are of something.
        (
            Party::Agent,
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {
                "sessionId": SESSION, "update": {"sessionUpdate": "tool_call",
                    "toolCallId": "call_1", "title": "Edit main.rs", "status": "in_progress"},
            }}),
        ),
    ]
}

/// CPU nanoseconds an item, after a turn to warm up.
fn cpu<T>(items: &[T], round: Duration, mut act: impl FnMut(&T)) -> f64 {
    items.iter().for_each(&mut act);
    let (started, before) = (Instant::now(), used());
    let mut done = 0;
    while started.elapsed() < round {
        for _ in 0..1 + 100 / items.len() {
            items.iter().for_each(&mut act);
            done += items.len();
        }
    }
    (used() - before) / done as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
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
    let command =
        |name: &str| json!({"name": name, "description": words, "input": {"hint": "a branch"}});
    let commands = ["review", "test", "plan", "fix", "commit"].map(command);
    let updates = [
        json!({"sessionUpdate": "agent_message_chunk", "content": text(words)}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": text(words)}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "Edit main.rs",
            "kind": "edit", "status": "in_progress",
            "content": [{"type": "content", "content": text(words)}, diff],
            "locations": [{"path": "/workspace/src/main.rs", "line": 12}],
            "rawInput": {"path": "/workspace/src/main.rs", "count": 3}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "in_progress"}),
        json!({"sessionUpdate": "plan", "entries": vec![entry; 5]}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
        json!({"sessionUpdate": "usage_update", "used": 53000, "size": 200_000,
            "cost": {"amount": 0.045, "currency": "USD"}}),
    ];
    updates
        .into_iter()
        .map(|update| {
            let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
            let params = json!({"sessionId": SESSION, "update": update});
            let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            let name = MIX.iter().find(|(name, _)| *name == kind).unwrap().0;
            (name, message.to_string())
        })
        .collect()
}
