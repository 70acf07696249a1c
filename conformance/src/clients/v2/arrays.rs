//! Arrays of messages, which version 2 does not have any more, from an agent to its client and back.

use std::time::Duration;

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::clients::assertions::first;
use crate::clients::played::{ClientCheck, Played};
use crate::clients::scripted_agent::{ScriptedAgent, hello};
use crate::harness::{Outcome, Stop, inconclusive};
use crate::wire::{Party, is_invalid_request};

pub(in crate::clients) const CHECKS: &[ClientCheck] =
    &[("client.arrays", arrays), ("client.no-arrays", no_arrays)];

/// How long the client may take for one array.
const PATIENCE: Duration = Duration::from_secs(5);

/// No client knows it. Sent after the arrays.
const AFTER: &str = "_acp-conformance/after";

fn all() -> [Value; 4] {
    let request = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "_acp-conformance/array", "params": {}});
    let note = json!({"jsonrpc": "2.0", "method": "_acp-conformance/note", "params": {}});
    let response = json!({"jsonrpc": "2.0", "id": "array-3", "result": {}});
    [
        json!([request("array-1"), note, request("array-2")]),
        json!([]),
        json!([note, note]),
        json!([response]),
    ]
}

/// Sends one array after the other, each when the one before was answered.
pub(super) fn turn(stage: &mut ScriptedAgent) -> bool {
    for array in all() {
        stage.send(&array);
        if stage.wait(PATIENCE, is_invalid_request).is_none() {
            break;
        }
    }
    stage.ask(AFTER, json!({}));
    hello(stage)
}

fn arrays(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    let recording = &played.recording;
    let entries = || recording.entries.iter().enumerate();
    let sent: Vec<usize> = entries()
        .filter(|(_, entry)| entry.from == Party::Agent && entry.value.is_array())
        .map(|(index, _)| index)
        .collect();
    let Some(begin) = sent.first() else {
        return inconclusive("the scenario did not get to the arrays");
    };
    let mut refused = 0;
    for (index, entry) in entries().skip(*begin) {
        let is_answer = entry.from == Party::Client && entry.value.get("method").is_none();
        if !is_answer || entry.request.is_some() {
            continue;
        }
        refused += 1;
        if !is_invalid_request(&entry.value) || refused > sent.len() {
            let code = ErrorCode::INVALID_REQUEST;
            let reason = format!(
                "expected one error {code} with the id null for an array, got more or another answer"
            );
            return Err(Stop::at(recording, index, reason));
        }
    }
    if let Some(array) = sent.get(refused) {
        let reason = "expected an answer to the array, got none";
        return Err(Stop::after(recording, *array, reason));
    }
    let after = recording.calls(Party::Agent, AFTER).next();
    match after.map(|(index, _)| (index, recording.answer(index))) {
        Some((_, Some(_))) => Ok(()),
        Some((index, None)) => {
            let reason = "expected an answer to the request after the arrays, got none";
            Err(Stop::after(recording, index, reason))
        }
        None => inconclusive("the scenario did not get to what follows the arrays"),
    }
}

fn no_arrays(played: &Played) -> Outcome {
    let mut said = played.recording.entries.iter().enumerate();
    let array = said.find(|(_, entry)| entry.from == Party::Client && entry.value.is_array());
    match array {
        Some((index, _)) => {
            let reason = "expected each message by itself, got an array";
            Err(Stop::at(&played.recording, index, reason))
        }
        None if played.recording.of(Party::Client).next().is_some() => Ok(()),
        None => inconclusive("the client sent no message"),
    }
}
