//! JSON-RPC 2.0, as the protocol uses it: ids, answers, errors.

use std::time::Instant;

use serde_json::{Value, json};

use super::watch::{free_of, watch};
use super::{Check, Requirement, info, must, should};
use crate::harness::{Conn, Entry, Outcome, Stop};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::{Kind, Level, Party, Rule};

use Check::Run;

const SILENT: &str = "no message of the agent";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "jsonrpc.envelope",
        "jsonrpc#conventions",
        "A String specifying the version of the JSON-RPC protocol. MUST be exactly \"2.0\".",
        free_of(&[Rule::Envelope], Level::Error, SILENT),
    ),
    must(
        "jsonrpc.schema",
        "overview#communication-model",
        "The protocol follows the JSON-RPC 2.0 specification with two types of messages",
        free_of(&[Rule::Schema], Level::Error, SILENT),
    ),
    must(
        "jsonrpc.string-id",
        "jsonrpc#response_object",
        "It MUST be the same as the value of the id member in the Request Object.",
        Run(string_id),
    ),
    must(
        "jsonrpc.large-id",
        "jsonrpc#response_object",
        "It MUST be the same as the value of the id member in the Request Object.",
        Run(large_id),
    ),
    must(
        "jsonrpc.negative-id",
        "jsonrpc#response_object",
        "It MUST be the same as the value of the id member in the Request Object.",
        Run(negative_id),
    ),
    must(
        "jsonrpc.answers-once",
        "overview#communication-model",
        "Methods: Request-response pairs that expect a result or error",
        free_of(&[Rule::UnmatchedAnswer], Level::Warning, SILENT),
    ),
    must(
        "jsonrpc.no-answer-to-notifications",
        "overview#error-handling",
        "Notifications never receive responses (success or error)",
        free_of(&[Rule::NotificationAnswered], Level::Warning, SILENT),
    ),
    must(
        "jsonrpc.bad-notification",
        "overview#error-handling",
        "Notifications never receive responses (success or error)",
        Run(bad_notification),
    ),
    must(
        "jsonrpc.own-ids",
        "jsonrpc#request_object",
        "An identifier established by the Client",
        watch(own_ids, "the agent sent no request"),
    ),
    should(
        "jsonrpc.error-without-id",
        "jsonrpc#response_object",
        "If there was an error in detecting the id in the Request object, it MUST be Null.",
        free_of(&[Rule::MissingId], Level::Warning, SILENT),
    ),
    should(
        "jsonrpc.unknown-method",
        "jsonrpc#error_object",
        "The method does not exist / is not available.",
        Run(unknown_method),
    ),
    should(
        "jsonrpc.missing-params",
        "jsonrpc#error_object",
        "Invalid method parameter(s).",
        Run(missing_params),
    ),
    should(
        "jsonrpc.wrong-params",
        "jsonrpc#error_object",
        "Invalid method parameter(s).",
        Run(wrong_params),
    ),
    should(
        "jsonrpc.params-as-array",
        "jsonrpc#error_object",
        "Invalid method parameter(s).",
        Run(params_as_array),
    ),
    should(
        "jsonrpc.parse-error",
        "jsonrpc#error_object",
        "Invalid JSON was received by the server.",
        Run(parse_error),
    ),
    should(
        "jsonrpc.survives-garbage",
        "jsonrpc#error_object",
        "Invalid JSON was received by the server.",
        Run(survives_garbage),
    ),
    should(
        "jsonrpc.survives-batch",
        "transports#stdio",
        "Messages are individual JSON-RPC requests, notifications, or responses.",
        Run(survives_batch),
    ),
    should(
        "jsonrpc.survives-odd-answers",
        "jsonrpc#response_object",
        "This member is REQUIRED.",
        Run(survives_odd_answers),
    ),
    info(
        "jsonrpc.invalid-request",
        "jsonrpc#error_object",
        "The JSON sent is not a valid Request object.",
        Run(invalid_request),
    ),
    info(
        "jsonrpc.null-id",
        "schema#requestid",
        "MUST contain a String, Number, or NULL value if included",
        Run(null_id),
    ),
    should(
        "jsonrpc.concurrent",
        "overview#communication-model",
        "Methods: Request-response pairs that expect a result or error",
        Run(concurrent),
    ),
];

fn own_ids(view: &View<'_>) -> Seen {
    if view.said.from != Party::Agent || view.said.kind != Kind::Request {
        return Ok(0);
    }
    let id = view.said.value.get("id").unwrap_or(&Value::Null);
    match view.state.open(Party::Agent, view.said.value) {
        Some(_) => fault(format!("the id {id} belongs to an open request")),
        None => Ok(1),
    }
}

/// What was sent at `mark` is answered as `answers` says. An ordinary request follows: once
/// that is answered, the first is given as long again and no longer.
fn is_answered(
    conn: &mut Conn,
    mark: usize,
    what: &str,
    answers: impl Fn(&Entry) -> bool,
) -> Outcome {
    let (started, limit) = (Instant::now(), conn.env.turn_timeout);
    let params = conn.setup(None);
    let probe = conn.request("session/new", params);
    let first = conn.wait(mark, what, limit, |recording, index| {
        let entry = recording.entries.get(index)?;
        let due = answers(entry);
        (due || entry.request == Some(probe)).then_some(due)
    })?;
    if first {
        return conn.reply_within(probe, limit).map(drop);
    }
    let patience = started.elapsed().max(conn.env.quiet).min(limit);
    let found = conn.wait(mark, what, patience, |recording, index| {
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
    is_answered(conn, request, "answer to session/new", |entry| {
        entry.request == Some(request)
    })
}

/// An error with this code comes for what was sent at `mark`.
fn error_comes(conn: &mut Conn, mark: usize, code: i64) -> Outcome {
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
    answers_to(cx.connected()?, Value::Null)
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
    conn.has_code(&reply, -32601)
}

fn missing_params(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/prompt", json!({}))?;
    conn.has_code(&reply, -32602)
}

fn wrong_params(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/new", json!({"cwd": 7, "mcpServers": "none"}))?;
    conn.has_code(&reply, -32602)
}

fn params_as_array(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = conn.refusal("session/prompt", json!(["session", []]))?;
    conn.has_code(&reply, -32602)
}

/// Sends a line that is no message; the agent must go on. Yields the mark.
fn garbage(conn: &mut Conn, line: &str) -> Outcome<usize> {
    let mark = conn.send_raw(format!("{line}\n"));
    conn.settle()?;
    conn.still_serves()?;
    Ok(mark)
}

fn parse_error(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let mark = conn.send_raw("{\"jsonrpc\": \"2.0\", \"id\": 1, oops\n");
    error_comes(conn, mark, -32700)
}

fn survives_garbage(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    for line in ["{oops", "\u{7f}\u{0}", "null", "\"text\"", "{}", "42"] {
        garbage(conn, line)?;
    }
    Ok(())
}

fn survives_batch(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let batch = json!([{"jsonrpc": "2.0", "id": "b", "method": UNKNOWN, "params": {}}]);
    garbage(conn, &batch.to_string()).map(drop)
}

const UNKNOWN: &str = "_acp-conformance/unknown";

fn survives_odd_answers(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    for answer in [
        json!({"jsonrpc": "2.0", "id": 987_654, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "nobody", "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}}),
    ] {
        garbage(conn, &answer.to_string())?;
    }
    Ok(())
}

fn invalid_request(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let message = json!({"jsonrpc": "2.0", "id": "odd", "method": 7});
    let mark = conn.send_raw(format!("{message}\n"));
    error_comes(conn, mark, -32600)
}

fn concurrent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let during = conn.session();
    let over = conn.recording().answer(running).map(|(index, _)| index);
    conn.cancel(&session);
    conn.turn_reply(running)?;
    during?;
    match over {
        None => Ok(()),
        Some(index) => Err(conn.at(index, "a request was answered only after the turn")),
    }
}
