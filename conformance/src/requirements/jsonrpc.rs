//! JSON-RPC 2.0, as the protocol uses it: ids, answers, errors.

use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::passive::{free_of, watch};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Cx, Entry, Outcome, Stop};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{FindingKind, Kind, Party, Version, is_invalid_request};

use Check::Run;

const SILENT: &str = "no message of the agent";

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "jsonrpc.envelope",
        free_of(&[FindingKind::Envelope], SILENT),
    ),
    ("jsonrpc.schema", free_of(&[FindingKind::Schema], SILENT)),
    ("jsonrpc.string-id", Run(string_id)),
    ("jsonrpc.large-id", Run(large_id)),
    ("jsonrpc.negative-id", Run(negative_id)),
    (
        "jsonrpc.answers-once",
        free_of(&[FindingKind::UnmatchedAnswer], SILENT),
    ),
    (
        "jsonrpc.no-answer-to-notifications",
        free_of(&[FindingKind::NotificationAnswered], SILENT),
    ),
    ("jsonrpc.bad-notification", Run(bad_notification)),
    (
        "jsonrpc.own-ids",
        watch(own_ids, "the agent sent no request"),
    ),
    (
        "jsonrpc.error-without-id",
        free_of(&[FindingKind::MissingId], SILENT),
    ),
    ("jsonrpc.unknown-method", Run(unknown_method)),
    ("jsonrpc.missing-params", Run(missing_params)),
    ("jsonrpc.wrong-params", Run(wrong_params)),
    ("jsonrpc.params-as-array", Run(params_as_array)),
    ("jsonrpc.parse-error", Run(parse_error)),
    ("jsonrpc.survives-garbage", Run(survives_garbage)),
    ("jsonrpc.survives-batch", Run(survives_batch)),
    ("jsonrpc.survives-odd-answers", Run(survives_odd_answers)),
    ("jsonrpc.invalid-request", Run(invalid_request)),
    ("jsonrpc.null-id", Run(null_id)),
    ("jsonrpc.concurrent", Run(concurrent)),
];

fn own_ids(view: &View<'_>) -> RuleResult {
    if view.said.from != Party::Agent || view.said.kind != Kind::Request {
        return Ok(0);
    }
    let id = view.said.value.get("id").unwrap_or(&Value::Null);
    match view.state.open(Party::Agent, view.said.value) {
        Some(_) => violation(format!(
            "expected an id of its own, got {id} of an open request"
        )),
        None => Ok(1),
    }
}

/// How much later than the answer to a later request an answer may come.
const LATER: Duration = Duration::from_secs(5);

/// Expects an answer, as `answers` says, to what was sent at `mark`.
///
/// An ordinary request follows. The first may be answered after it: it has as long again, and at
/// least [`LATER`].
fn is_answered(
    conn: &mut Conn,
    mark: usize,
    what: &str,
    answers: impl Fn(&Entry) -> bool,
) -> Outcome {
    let (started, limit) = (Instant::now(), conn.env.start_timeout());
    let params = conn.setup(None);
    let probe = conn.request("session/new", params);
    let first = conn.wait_on(Some(mark), mark, what, limit, |recording, index| {
        let entry = recording.entries.get(index)?;
        let due = answers(entry);
        (due || entry.request == Some(probe)).then_some(due)
    })?;
    if first {
        return conn.reply_within(probe, limit).map(drop);
    }
    let least = LATER.min(conn.env.timeout);
    let patience = started.elapsed().max(least).min(limit);
    let found = conn.wait_on(Some(mark), mark, what, patience, |recording, index| {
        answers(recording.entries.get(index)?).then_some(())
    });
    match found {
        Err(Stop::Fail(mut failure)) if conn.recording().answer(probe).is_some() => {
            let wrong = conn
                .since(mark)
                .find(|(_, entry)| entry.from == Party::Agent && entry.kind == Kind::Error);
            let wrong = wrong.map(|(_, entry)| entry.excerpt());
            let nothing = || "nothing, though a request after it was answered".to_owned();
            failure.came = Some(wrong.unwrap_or_else(nothing));
            failure.sent = conn.since(mark).next().map(|(_, entry)| entry.excerpt());
            Err(Stop::Fail(failure))
        }
        other => other,
    }
}

/// A request with this id gets its answer.
fn answers_to(conn: &mut Conn, id: Value) -> Outcome {
    let params = conn.setup(None);
    let request =
        conn.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/new", "params": params}));
    is_answered(conn, request, "an answer to session/new", |entry| {
        entry.request == Some(request)
    })
}

/// An error with this code comes for what was sent at `mark`.
fn error_comes(conn: &mut Conn, mark: usize, code: ErrorCode) -> Outcome {
    is_answered(conn, mark, &format!("error {code}"), |entry| {
        entry.value.pointer("/error/code") == Some(&json!(code))
    })
}

fn string_id(cx: &mut Cx) -> Outcome {
    answers_to(cx.ready()?, json!("a-b c/ä"))
}

fn large_id(cx: &mut Cx) -> Outcome {
    answers_to(cx.ready()?, json!(9_007_199_254_740_991_i64))
}

fn negative_id(cx: &mut Cx) -> Outcome {
    answers_to(cx.ready()?, json!(-7))
}

fn null_id(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    if conn.version() == Version::V1 {
        return answers_to(conn, Value::Null);
    }
    let params = conn.setup(None);
    let request = json!({"jsonrpc": "2.0", "id": null, "method": "session/new", "params": params});
    let mark = conn.send(&request);
    let wanted = format!("error {} with the id null", ErrorCode::INVALID_REQUEST);
    is_answered(conn, mark, &wanted, |entry| {
        is_invalid_request(&entry.value)
    })
}

fn bad_notification(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    for (method, params) in [
        ("session/cancel", json!({"sessionId": 7})),
        ("no/such/notification", json!({})),
    ] {
        let mark = conn.notify(method, params);
        conn.settle()?;
        conn.nothing_answered_since(mark)?;
    }
    Ok(())
}

fn unknown_method(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("no/such/method", json!({}))?;
    conn.has_code(&reply, ErrorCode::METHOD_NOT_FOUND)
}

fn missing_params(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/prompt", json!({}))?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)
}

fn wrong_params(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/new", json!({"cwd": 7, "mcpServers": "none"}))?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)
}

fn params_as_array(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/prompt", json!(["session", []]))?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)
}

/// Sends a line that is no message; the agent must go on. A failure shows the line as what was sent.
fn garbage(conn: &mut Conn, line: &str) -> Outcome {
    let mark = conn.send_raw(format!("{line}\n"));
    let served = conn.settle().and_then(|()| conn.still_serves());
    served.map_err(|stop| match stop {
        Stop::Fail(mut failure) => {
            failure.sent = conn.recording().entries.get(mark).map(Entry::excerpt);
            Stop::Fail(failure)
        }
        other => other,
    })
}

fn parse_error(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let mark = conn.send_raw("{\"jsonrpc\": \"2.0\", \"id\": 1, oops\n");
    error_comes(conn, mark, ErrorCode::PARSE_ERROR)
}

/// A notification with an array as its params, which the protocol never has.
const ARRAY: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":["session"]}"#;

fn survives_garbage(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    for line in [
        "{oops",
        "\u{7f}\u{0}",
        "null",
        "\"text\"",
        "{}",
        "42",
        ARRAY,
    ] {
        garbage(conn, line)?;
    }
    Ok(())
}

fn survives_batch(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let batch = json!([{"jsonrpc": "2.0", "id": "b", "method": UNKNOWN, "params": {}}]);
    garbage(conn, &batch.to_string())
}

const UNKNOWN: &str = "_acp-conformance/unknown";

fn survives_odd_answers(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    for answer in [
        json!({"jsonrpc": "2.0", "id": 987_654, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "nobody", "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": ErrorCode::PARSE_ERROR, "message": "x"}}),
    ] {
        garbage(conn, &answer.to_string())?;
    }
    Ok(())
}

fn invalid_request(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let message = json!({"jsonrpc": "2.0", "id": "odd", "method": 7});
    let mark = conn.send_raw(format!("{message}\n"));
    error_comes(conn, mark, ErrorCode::INVALID_REQUEST)
}

fn concurrent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let during = conn.session();
    let over = conn.turn_end(running);
    conn.cancel(&session);
    conn.turn_reply(running)?;
    during?;
    match over {
        None => Ok(()),
        Some(index) => Err(conn.at(
            index,
            "expected an answer during the turn, got the end of the turn before it",
        )),
    }
}
