//! Parsing and serialising each kind of message, beside the official crate's types.
//!
//! `cargo bench -p acp-sdk --bench messages` takes five minutes; add a part of a name to run
//! only that.

mod answers;
mod odd;
mod requests;
mod updates;

use std::hint::black_box;
use std::time::Duration;

use acp_sdk::runtime::{Described, decode, encode};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

const SESSION: &str = "sess_000000000001";
const FILE: &str = "/workspace/src/main.rs";
const WORDS: &str = "the quick brown fox jumps over the lazy dog, and so on it goes";

/// Lines as source code has them: most are short and indented, some have quotes.
const CODE: &str = r#"
/// Greets everybody who is on the list, in its order, and says how many there were.
pub fn greet(names: &[String], out: &mut impl Write) -> io::Result<usize> {
    let mut greeted = 0;
    for name in names.iter().filter(|name| !name.is_empty()) {
        writeln!(out, "hello, {name}")?;
        greeted += 1;
    }
    match greeted {
        0 => writeln!(out, "nobody is here")?,
        1 => writeln!(out, "that was all")?,
        _ => writeln!(out, "these were {greeted} of {}", names.len())?,
    }
    Ok(greeted)
}
"#;

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn config_options() -> Value {
    json!([
        {"id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": "large", "options": [
                {"value": "small", "name": "Small", "description": WORDS},
                {"value": "large", "name": "Large", "description": WORDS}]},
        {"id": "web", "name": "Search the web", "type": "boolean", "currentValue": true}
    ])
}

fn mcp_servers() -> Value {
    json!([
        {"name": "files", "command": "/usr/bin/mcp-files", "args": ["--root", "/workspace"],
            "env": [{"name": "LOG", "value": "info"}]},
        {"type": "http", "name": "search", "url": "https://example.com/mcp",
            "headers": [{"name": "Authorization", "value": "Bearer abc"}]}
    ])
}

/// Measures both crates on one message.
fn compare<O, T>(c: &mut Criterion, name: &str, message: &Value)
where
    O: Serialize + DeserializeOwned + Described,
    T: Serialize + DeserializeOwned,
{
    let text = message.to_string();
    let mut parse = c.benchmark_group(format!("parse {name}"));
    parse.throughput(Throughput::Bytes(text.len() as u64));
    // As a connection reads it, and as whoever has only serde.
    parse.bench_function("ours", |b| {
        let mut refuse = |leniency| panic!("{name} is not valid: {leniency:?}");
        b.iter(|| decode::<O>(black_box(&text), &mut refuse).expect("the samples are valid"));
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

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500));
    targets = updates::all, requests::all, answers::all, odd::all
}
criterion_main!(benches);
