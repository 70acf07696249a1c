//! Cancelled requests in v2.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Conn, Consent, Cx, Entry, Outcome, Reply, Stop, inconclusive, skip};
use crate::requirements::cancellation::{must_be_cancelled, stop_of};
use crate::requirements::passive::text;
use crate::requirements::tool_calls::{Asking, asking, did_not_run};
use crate::requirements::{Check, NamedCheck};
use crate::wire::{Party, Version, is_output};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("cancellation.request-answered", Run(request_answered)),
    ("cancellation.at-once", Run(at_once)),
    ("cancellation.request", Run(request)),
    ("cancellation.unanswered", Run(unanswered)),
    ("cancellation.cancels-requests", Run(cancels_requests)),
];

/// Writes a prompt and the next message in one write, so that the agent may read both before it
/// inserts the message. Returns the place of the prompt if it is answered with a result, none if with
/// error -32800.
///
/// # Errors
/// When the answer is another error, or an error about a message that was inserted.
pub(super) fn inserted(
    conn: &mut Conn,
    session: &str,
    next: impl Fn(&Value) -> Value,
) -> Outcome<Option<usize>> {
    let Some(text) = conn.env.profile.prompt("slow", &conn.env.folder) else {
        return skip("the profile has no prompt `slow`");
    };
    conn.needs_turn()?;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let id = json!(conn.next_id());
    let prompt = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params});
    let sent = conn.send_joined(&[prompt, next(&id)]);
    let request = sent.first().copied().unwrap_or_default();
    let reply = conn.reply_within(request, conn.env.turn_timeout)?;
    match (&reply.answer, reply.code()) {
        (Ok(_), _) => return Ok(Some(request)),
        (_, Some(ErrorCode::REQUEST_CANCELLED)) => {}
        (Err(_), code) => {
            let code = code.map_or_else(|| "another error".to_owned(), |code| code.to_string());
            let reason = format!("expected a result or error -32800, got {code}");
            return Err(conn.at(reply.index, reason));
        }
    }
    conn.settle()?;
    let mut updates = conn.recording().updates();
    match updates.find(|it| it.session == session && it.kind.starts_with("user_message")) {
        Some(update) => Err(conn.at(
            reply.index,
            format!(
                "expected a result for a prompt with a `{}`, got an error",
                update.kind
            ),
        )),
        None => Ok(None),
    }
}

fn at_once(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    let Some(request) = inserted(conn, &session, |_| cancel.clone())? else {
        return Ok(());
    };
    let Some(reply) = end_of_cancelled(conn, request)? else {
        return Ok(());
    };
    match stop_of(&reply.answer) {
        Some("cancelled") => Ok(()),
        Some("error") => Err(conn.at(
            reply.index,
            "expected another stop reason of cancelled work, got error",
        )),
        // Without work there is none whose end could have a reason.
        _ if !has_worked(conn, request) => Ok(()),
        stop => inconclusive(format!(
            "the work may have ended before the cancellation: {}",
            stop.unwrap_or("none")
        )),
    }
}

/// Waits for the end of the work of a prompt that was cancelled before anything of its work was seen. Yields
/// none if none was reported, as in version 2 a prompt may be inserted and cancelled before its work begins,
/// and no end is due then.
///
/// # Errors
/// When the work that was reported does not end in time.
pub(in crate::requirements) fn end_of_cancelled(
    conn: &mut Conn,
    request: usize,
) -> Outcome<Option<Reply>> {
    match conn.turn_reply(request) {
        Err(Stop::Fail(_))
            if conn.version() == Version::V2
                && !conn.has_ended()
                && conn.recording().result(request).is_some()
                && !has_worked(conn, request) =>
        {
            Ok(None)
        }
        reply => reply.map(Some),
    }
}

/// Whether the agent has reported work in the session of a prompt since it was sent.
fn has_worked(conn: &Conn, request: usize) -> bool {
    let recording = conn.recording();
    let session = recording.entries.get(request).and_then(Entry::session);
    let mut ours = recording
        .updates()
        .filter(|update| update.index > request && Some(update.session) == session);
    ours.any(|update| {
        let state = text(update.body, "/state").filter(|_| update.kind == "state_update");
        is_output(update.kind) || state.is_some_and(|state| state != "idle")
    })
}

fn request(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let cancel = |id: &Value| json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
    let Some(request) = inserted(conn, &session, cancel)? else {
        return Ok(());
    };
    // Whether the request or the session ends the work is the agent's choice.
    conn.cancel(&session);
    end_of_cancelled(conn, request).map(drop)
}

/// A result or an error, whatever the agent makes of the cancellation.
fn request_answered(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let nowhere = conn.env.folder.join("cancelled");
    let request = conn.request("session/list", json!({"cwd": nowhere}));
    let id = conn.id_of(request);
    conn.notify("$/cancel_request", json!({"requestId": id}));
    conn.reply(request).map(drop)
}

/// Cancels a turn in which a request for permission is open, and does not answer that. Yields the place of
/// the request, and the end of the turn.
fn left_open(conn: &mut Conn) -> Outcome<(usize, Reply)> {
    let Asking {
        session,
        running,
        asked,
    } = asking(conn, Consent::Hold)?;
    conn.notify("session/cancel", json!({"sessionId": session}));
    let reply = conn.turn_reply(running)?;
    Ok((asked, reply))
}

fn unanswered(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (asked, reply) = left_open(conn)?;
    must_be_cancelled(conn, &reply)?;
    conn.settle()?;
    did_not_run(conn, asked, conn.mark())
}

fn cancels_requests(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (asked, _) = left_open(conn)?;
    let (id, limit) = (conn.id_of(asked), conn.env.timeout);
    // It may come after the end of the turn.
    let cancelled = conn.wait(asked, "a `$/cancel_request`", limit, |recording, index| {
        let mut calls = recording.calls(Party::Agent, "$/cancel_request");
        calls
            .any(|(at, entry)| at == index && entry.params().get("requestId") == Some(&id))
            .then_some(())
    });
    match cancelled {
        Err(Stop::Fail(_)) if !conn.has_ended() => Err(conn.at(
            asked,
            "expected a `$/cancel_request` for this in the cancelled turn, got none",
        )),
        other => other,
    }
}
