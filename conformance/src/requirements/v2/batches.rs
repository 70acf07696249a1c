//! Batches, which v2 takes from JSON-RPC.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Conn, Cx, Outcome};
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("transports.bad-batch", Run(bad_batch)),
    ("transports.empty-batch", Run(empty_batch)),
    ("transports.batch", Run(batch)),
    ("transports.notification-batch", Run(notification_batch)),
    ("transports.bad-batch-entry", Run(bad_batch_entry)),
];

/// Sends a line and waits for the agent's next one that is no call of its own.
fn exchange(conn: &mut Conn, line: &str) -> Outcome<(usize, Value)> {
    let mark = conn.send_raw(format!("{line}\n"));
    let limit = conn.env.timeout;
    conn.wait(mark, "an answer to the batch", limit, |recording, index| {
        let entry = recording.entries.get(index)?;
        let is_call = entry.value.get("method").is_some();
        (entry.from == Party::Agent && !is_call).then(|| (index, entry.value.clone()))
    })
}

/// Sends a line, whose answer must be one error with this code and without an id.
fn single_error(cx: &mut Cx, line: &str, code: ErrorCode) -> Outcome {
    let conn = cx.connected()?;
    let (index, answer) = exchange(conn, line)?;
    let found = answer.get("error").and_then(crate::wire::error_code);
    if found != Some(code) || answer.get("id") != Some(&Value::Null) {
        return Err(conn.at(
            index,
            format!("expected one error {code} with the id null, got another answer"),
        ));
    }
    conn.still_serves()
}

fn bad_batch(cx: &mut Cx) -> Outcome {
    single_error(
        cx,
        "[{\"jsonrpc\": \"2.0\", \"method\"",
        ErrorCode::PARSE_ERROR,
    )
}

fn empty_batch(cx: &mut Cx) -> Outcome {
    single_error(cx, "[]", ErrorCode::INVALID_REQUEST)
}

fn request(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}})
}

fn batch(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let line = json!([request("a"), request("b")]).to_string();
    let (index, answer) = exchange(conn, &line)?;
    let ids = |answers: &Vec<Value>| {
        let has = |id: &str| answers.iter().any(|answer| answer["id"] == id);
        answers.len() == 2 && has("a") && has("b")
    };
    if answer.as_array().is_some_and(ids) {
        Ok(())
    } else {
        Err(conn.at(
            index,
            "expected an array of the two answers, got another answer",
        ))
    }
}

fn notification_batch(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let session = conn.session()?;
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel",
        "params": {"sessionId": session}});
    let mark = conn.send_raw(format!("{}\n", json!([cancel, cancel])));
    conn.settle()?;
    let quiet = conn.env.quiet;
    conn.listen(quiet);
    let stray = conn.since(mark).find(|(_, entry)| {
        let unasked = entry.request.is_none() && entry.value.get("method").is_none();
        entry.from == Party::Agent && unasked
    });
    match stray {
        Some((index, _)) => Err(conn.at(
            index,
            "expected no answer to notifications in a batch, got one",
        )),
        None => Ok(()),
    }
}

fn bad_batch_entry(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let line = json!([request("a"), 7]).to_string();
    let mark = conn.send_raw(format!("{line}\n"));
    let limit = conn.env.timeout;
    conn.wait(
        mark,
        "a result of the valid entry",
        limit,
        |recording, index| {
            let entry = recording.entries.get(index)?;
            let answers = |answer: &Value| answer["id"] == "a" && answer.get("result").is_some();
            let inside = entry
                .value
                .as_array()
                .is_some_and(|all| all.iter().any(answers));
            (entry.from == Party::Agent && (inside || answers(&entry.value))).then_some(())
        },
    )
}
