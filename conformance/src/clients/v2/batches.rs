//! Arrays of messages, which version 2 has, from an agent to its client.

use std::time::Duration;

use acp_schema::Login;
use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::clients::Played;
use crate::clients::assertions::{expect, first};
use crate::clients::scenarios::hello;
use crate::clients::scripted_agent::ScriptedAgent;
use crate::clients::table::ClientCheck;
use crate::harness::{Entry, Outcome, Stop, inconclusive};
use crate::wire::{Party, login, sets_up};

pub(in crate::clients) const CHECKS: &[ClientCheck] = &[
    ("client.batch", batch),
    ("client.notification-batch", notification_batch),
    ("client.empty-batch", empty_batch),
    ("client.bad-batch-entry", bad_batch_entry),
    ("client.bad-batch", bad_batch),
    ("client.no-lifecycle-batch", no_lifecycle_batch),
];

/// How long the client may take for one array.
const PATIENCE: Duration = Duration::from_secs(5);

/// An array that is cut off.
const CUT: &str = "[{\"jsonrpc\": \"2.0\", \"method\"";

/// No client knows it.
const UNKNOWN: &str = "_acp-conformance/batched";

/// Sent after the array of notifications: what it is answered with, comes before the answer to
/// this.
const AFTER: &str = "_acp-conformance/after";

fn request(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": UNKNOWN, "params": {}})
}

fn note() -> Value {
    json!({"jsonrpc": "2.0", "method": "_acp-conformance/note", "params": {}})
}

fn mixed() -> Value {
    json!([request("batch-1"), note(), request("batch-2")])
}

fn notes() -> Value {
    json!([note(), note()])
}

fn with_a_bad_entry() -> Value {
    json!([request("batch-3"), 7])
}

/// Sends one array after the other, each when the one before was answered.
pub(super) fn turn(stage: &mut ScriptedAgent) -> bool {
    stage.send(&mixed());
    stage.wait(PATIENCE, |said| answers(said, "batch-2"));
    stage.send(&notes());
    stage.ask(AFTER, json!({}));
    stage.send(&json!([]));
    stage.wait(PATIENCE, |said| is_error(said, ErrorCode::INVALID_REQUEST));
    stage.send(&with_a_bad_entry());
    stage.wait(PATIENCE, |said| answers(said, "batch-3"));
    stage.raw(CUT);
    stage.wait(PATIENCE, |said| is_error(said, ErrorCode::PARSE_ERROR));
    hello(stage)
}

/// Whether it is, or has among others, the answer to the request with this id.
fn answers(said: &Value, id: &str) -> bool {
    let one = |said: &Value| said.get("method").is_none() && said.get("id") == Some(&json!(id));
    one(said) || said.as_array().is_some_and(|all| all.iter().any(one))
}

/// Whether it is one error with this code and without an id.
fn is_error(said: &Value, code: ErrorCode) -> bool {
    said.get("id") == Some(&Value::Null) && said.pointer("/error/code") == Some(&json!(code))
}

/// What the client wrote between this message of the agent, by its place, and its next one,
/// other than calls.
fn said_after(played: &Played, sent: usize) -> impl Iterator<Item = (usize, &Entry)> {
    let later = played.recording.entries.iter().enumerate().skip(sent + 1);
    let until = later.take_while(|(_, entry)| entry.from == Party::Client);
    until.filter(|(_, entry)| !entry.is_call())
}

/// Where the agent sent this.
fn sent(played: &Played, is_it: impl Fn(&Entry) -> bool) -> Outcome<usize> {
    first(played, "session/prompt")?;
    let mut entries = played.recording.entries.iter();
    let at = entries.position(|entry| entry.from == Party::Agent && is_it(entry));
    at.map_or_else(
        || inconclusive("the scenario did not get to this array"),
        Ok,
    )
}

/// The first answer to what stands at this place, which must be there.
fn answer(played: &Played, at: usize) -> Outcome<(usize, &Entry)> {
    let found = said_after(played, at).next();
    found.ok_or_else(|| {
        let reason = "expected an answer to the array, got none";
        Stop::after(&played.recording, at, reason)
    })
}

fn batch(played: &Played) -> Outcome {
    let at = sent(played, |entry| entry.value == mixed())?;
    let (index, entry) = answer(played, at)?;
    let all = entry
        .value
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let both = ["batch-1", "batch-2"]
        .iter()
        .all(|id| answers(&entry.value, id));
    let reason = "expected an array of the two answers, got something else";
    expect(played, index, both && all.len() == 2, reason)
}

fn notification_batch(played: &Played) -> Outcome {
    let at = sent(played, |entry| entry.value == notes())?;
    let Some((next, _)) = played.recording.calls(Party::Agent, AFTER).next() else {
        return inconclusive("the scenario did not get to what follows the notifications");
    };
    let stray = [at, next].into_iter().flat_map(|at| said_after(played, at));
    let stray = stray.map(|(index, _)| index).find(|index| {
        let entries = &played.recording.entries;
        entries
            .get(*index)
            .is_some_and(|entry| entry.request != Some(next))
    });
    match stray {
        None => Ok(()),
        Some(index) => expect(
            played,
            index,
            false,
            "expected no answer to notifications in a batch, got one",
        ),
    }
}

/// What stands at this place is answered by a single error with this code and no id. The
/// answer to what stands before may come late.
fn refused(played: &Played, at: usize, code: ErrorCode) -> Outcome {
    let (index, _) = answer(played, at)?;
    let refused = said_after(played, at).any(|(_, entry)| is_error(&entry.value, code));
    let reason = format!("expected a single error {code} with the id null, got something else");
    expect(played, index, refused, &reason)
}

fn empty_batch(played: &Played) -> Outcome {
    refused(
        played,
        sent(played, |entry| entry.value == json!([]))?,
        ErrorCode::INVALID_REQUEST,
    )
}

fn bad_batch_entry(played: &Played) -> Outcome {
    let at = sent(played, |entry| entry.value == with_a_bad_entry())?;
    let mut said = said_after(played, at);
    match said.any(|(_, entry)| answers(&entry.value, "batch-3")) {
        true => Ok(()),
        false => {
            let reason = "expected an answer to the valid entry, got none";
            Err(Stop::after(&played.recording, at, reason))
        }
    }
}

/// Whether messages with this method depend on their order.
fn is_lifecycle(method: &str) -> bool {
    matches!(method, "initialize" | "session/prompt")
        || login(method) == Some(Login::In)
        || sets_up(method)
}

fn no_lifecycle_batch(played: &Played) -> Outcome {
    for (index, entry) in played.recording.entries.iter().enumerate() {
        let all = entry.value.as_array().into_iter().flatten();
        let mut methods = all.filter_map(|one| one.get("method")?.as_str());
        let found = methods.find(|method| is_lifecycle(method));
        if let Some(method) = found.filter(|_| entry.from == Party::Client) {
            let reason = format!("expected {method} as a message of its own, got it in a batch");
            return Err(Stop::at(&played.recording, index, reason));
        }
    }
    match played.recording.of(Party::Client).next() {
        Some(_) => Ok(()),
        None => inconclusive("the client sent no message"),
    }
}

fn bad_batch(played: &Played) -> Outcome {
    refused(
        played,
        sent(played, |entry| entry.raw.as_deref() == Some(CUT))?,
        ErrorCode::PARSE_ERROR,
    )
}
