//! Arrays of messages, which v2 does not have any more.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Conn, Cx, Outcome};
use crate::requirements::{Check, NamedCheck};
use crate::wire::{Party, is_invalid_request};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[("transports.arrays", Run(arrays))];

fn arrays(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let request =
        |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}});
    let note = json!({"jsonrpc": "2.0", "method": "_acp-conformance/note", "params": {}});
    let response = json!({"jsonrpc": "2.0", "id": "array-3", "result": {}});
    for array in [
        json!([request("array-1"), request("array-2")]),
        json!([]),
        json!([note, note]),
        json!([response]),
    ] {
        is_refused(conn, &array)?;
    }
    Ok(())
}

/// Sends an array. It must get one error, and the connection must serve afterwards.
fn is_refused(conn: &mut Conn, array: &Value) -> Outcome {
    let is_answer =
        |from: Party, value: &Value| from == Party::Agent && value.get("method").is_none();
    let mark = conn.send_raw(format!("{array}\n"));
    let limit = conn.env.timeout;
    conn.wait(mark, "an answer to the array", limit, |recording, index| {
        let entry = recording.entries.get(index)?;
        is_answer(entry.from, &entry.value).then_some(())
    })?;
    conn.still_serves()?;
    let answers = conn
        .since(mark)
        .filter(|(_, entry)| is_answer(entry.from, &entry.value) && entry.request.is_none());
    let answers: Vec<(usize, bool)> = answers
        .map(|(index, entry)| (index, is_invalid_request(&entry.value)))
        .collect();
    let code = ErrorCode::INVALID_REQUEST;
    let reason = format!(
        "expected one error {code} with the id null for an array, got more or another answer"
    );
    match answers[..] {
        [(_, true)] => Ok(()),
        [(index, false), ..] | [_, (index, _), ..] => Err(conn.at(index, reason)),
        [] => Err(conn.at(mark, reason)),
    }
}
