//! Cancellation of turns and of requests, with its races.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::prompt_turn::STOP_REASONS;
use super::tool_calls::{Asking, asking, did_not_run};
use super::v2::cancellation::end_of_cancelled;
use super::{Check, NamedCheck};
use crate::harness::{Conn, Consent, Cx, Outcome, Stop, inconclusive, skip};
use crate::wire::{Party, Version};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("cancellation.is-no-error", Run(is_no_error)),
    ("cancellation.while-asking", Run(while_asking)),
    ("cancellation.at-once", Run(at_once)),
    ("cancellation.one-session-only", Run(one_session_only)),
    ("cancellation.request", Run(request)),
    ("cancellation.request-ends-turn", Run(request_ends_turn)),
];

/// A turn that was cancelled while it ran: its answer, whatever it is.
fn cancelled(conn: &mut Conn) -> Outcome<crate::harness::Reply> {
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    conn.cancel(&session);
    conn.turn_reply(running)
}

pub(super) fn stop_of(answer: &Result<Value, Value>) -> Option<&str> {
    answer.as_ref().ok()?.get("stopReason")?.as_str()
}

/// The turn must have ended as cancelled.
pub(super) fn must_be_cancelled(conn: &Conn, reply: &crate::harness::Reply) -> Outcome {
    let stop = match (&reply.answer, stop_of(&reply.answer)) {
        (Ok(_), Some("cancelled")) => return Ok(()),
        (Ok(_), stop) => stop.unwrap_or("none"),
        (Err(_), _) => "an error",
    };
    let reason = format!("expected the stop reason cancelled, got {stop}");
    Err(conn.at(reply.index, reason))
}

fn is_no_error(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let reply = cancelled(conn)?;
    match (&reply.answer, stop_of(&reply.answer)) {
        (Err(_), _) => Err(conn.at(
            reply.index,
            "expected the stop reason cancelled, got an error",
        )),
        (Ok(_), Some(stop)) if STOP_REASONS.contains(&stop) => Ok(()),
        (Ok(_), stop) if conn.version() == Version::V2 => {
            // The prompt was answered before, so an error can only be shown as a reason.
            let stop = stop.unwrap_or("none");
            let reason = format!("expected the stop reason cancelled, got {stop}");
            Err(conn.at(reply.index, reason))
        }
        (Ok(_), _) => Ok(()),
    }
}

fn while_asking(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let Asking {
        session,
        running,
        asked,
    } = asking(conn, Consent::Hold)?;
    conn.cancel(&session);
    let reply = conn.turn_reply(running)?;
    must_be_cancelled(conn, &reply)?;
    // What a tool does in spite of it may be reported after the turn.
    conn.settle()?;
    did_not_run(conn, asked, conn.mark())
}

fn at_once(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let Some(text) = conn.env.profile.prompt("slow", &conn.env.folder) else {
        return skip("the profile has no prompt `slow`");
    };
    conn.needs_turn()?;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let id = conn.next_id();
    // In one write, so that the agent may read both before it does anything.
    let sent = conn.send_joined(&[
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
    ]);
    let reply = conn.turn_reply(sent.first().copied().unwrap_or_default())?;
    match stop_of(&reply.answer) {
        Some("end_turn") => inconclusive("the turn may have ended before the cancellation"),
        _ => must_be_cancelled(conn, &reply),
    }
}

fn one_session_only(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (kept, other) = (conn.session()?, conn.session()?);
    let running = conn.begin_slow(&kept)?;
    let to_cancel = conn.begin(&other, "slow")?;
    conn.cancel(&other);
    end_of_cancelled(conn, to_cancel)?;
    conn.settle()?;
    let hit = conn.turn_end(running);
    conn.cancel(&kept);
    let ended = conn.turn_reply(running)?;
    match hit {
        Some(index) => {
            if stop_of(&ended.answer) == Some("cancelled") {
                Err(conn.at(
                    index,
                    "expected the turn of the other session to go on, got cancelled",
                ))
            } else {
                inconclusive("the turn ended by itself too soon")
            }
        }
        None => Ok(()),
    }
}

/// Cancels the request of a running turn. Yields the request, and its answer when
/// one came before the turn was cancelled as a turn.
fn cancel_request(conn: &mut Conn) -> Outcome<(usize, Option<usize>)> {
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let id = conn.id_of(running);
    conn.notify("$/cancel_request", json!({"requestId": id}));
    // An agent that cancels requests may be busy; one that does not goes on.
    let limit = conn.env.timeout;
    let what = "the end of the request";
    let found = conn.wait_on(Some(running), running, what, limit, |recording, _| {
        recording.answer(running).map(|(index, _)| index)
    });
    let honoured = match found {
        Err(stop) if conn.has_ended() => return Err(stop),
        found => found.ok(),
    };
    if honoured.is_none() {
        conn.cancel(&session);
    }
    conn.turn_reply(running)?;
    Ok((running, honoured))
}

fn request(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (running, honoured) = cancel_request(conn)?;
    let Some(index) = honoured else {
        return skip("the agent does not cancel requests, which is optional");
    };
    let error = conn
        .recording()
        .answer(running)
        .and_then(|(_, entry)| entry.value.get("error"));
    match error.and_then(crate::wire::error_code) {
        None | Some(ErrorCode::REQUEST_CANCELLED) => Ok(()),
        Some(code) => Err(conn.at(
            index,
            format!(
                "expected error {}, got {code}",
                ErrorCode::REQUEST_CANCELLED
            ),
        )),
    }
}

fn request_ends_turn(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (running, honoured) = cancel_request(conn)?;
    let answer = conn.recording().answer(running);
    let by_itself = answer.is_some_and(|(_, entry)| stop_of(&entry.answer()) == Some("end_turn"));
    match honoured {
        Some(_) if by_itself => inconclusive("the turn of the prompt `slow` ended by itself"),
        Some(_) => Ok(()),
        None => {
            // Not the end of the turn, which the suite has cancelled in another way since.
            let sent = conn.recording().calls(Party::Client, "$/cancel_request");
            let place = sent.last().map_or(0, |(place, _)| place);
            let reason = "expected $/cancel_request to end the turn of a prompt, got no end";
            Err(Stop::after(conn.recording(), place, reason))
        }
    }
}
