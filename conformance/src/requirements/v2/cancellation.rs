//! Cancelled requests in v2.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Conn, Consent, Cx, Outcome, Reply, Stop, Turn, inconclusive, skip};
use crate::requirements::cancellation::must_be_cancelled;
use crate::requirements::tool_calls::{Asking, asking, did_not_run};
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

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
    let reply = conn.reply(request)?;
    match reply.code() {
        None => return Ok(Some(request)),
        Some(ErrorCode::REQUEST_CANCELLED) => {}
        Some(code) => {
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
    let Turn { end, stop, .. } = conn.finish(request)?;
    match stop.as_str() {
        "cancelled" => Ok(()),
        "end_turn" => inconclusive("the turn may have ended before the cancellation"),
        _ => Err(conn.at(
            end,
            format!("expected the stop reason cancelled, got {stop:?}"),
        )),
    }
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
    conn.turn_reply(request).map(drop)
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
