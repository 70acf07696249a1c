//! The steps that checks of version 2 are made of: opening, prompts, states.

use serde_json::{Value, json};

use crate::harness::{Conn, Outcome, Recording, inconclusive};
use crate::suite::Cx;

/// What a session's work came to.
pub(super) struct Work {
    /// The place of the prompt.
    pub(super) request: usize,
    /// The place of the state update that ends it.
    pub(super) end: usize,
    /// Why it ended; empty when that is not said.
    pub(super) stop: String,
}

/// The params of `initialize` for a version.
pub(crate) fn initialize(version: &Value) -> Value {
    json!({
        "protocolVersion": version,
        "info": {"name": "acp-conformance", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {
            "auth": {"terminal": {}},
            "elicitation": {"form": {}, "url": {}},
        },
    })
}

/// A connection of the check's own, initialized.
pub(super) fn open(cx: &mut Cx) -> Outcome<&mut Conn> {
    let conn = cx.fresh()?;
    let result = conn.result("initialize", initialize(&json!(2)))?;
    conn.agent = Some(result);
    Ok(conn)
}

/// The same with a session.
pub(super) fn ready(cx: &mut Cx) -> Outcome<(&mut Conn, String)> {
    let conn = open(cx)?;
    let session = conn.session()?;
    Ok((conn, session))
}

/// Sends a prompt by its word, and waits until it is accepted. Yields its place and that
/// of the answer.
pub(super) fn accepted(conn: &mut Conn, session: &str, word: &str) -> Outcome<(usize, usize)> {
    let request = conn.begin(session, word)?;
    let reply = conn.reply(request)?;
    match reply.answer {
        Ok(_) => Ok((request, reply.index)),
        Err(_) => Err(conn.at(reply.index, "the prompt was refused")),
    }
}

/// Waits for the session's work to end.
pub(super) fn ended(conn: &mut Conn, session: &str, request: usize) -> Outcome<Work> {
    let limit = conn.env.turn_timeout;
    let found = conn.wait(request, "idle state_update", limit, |recording, index| {
        let (state, update) = state(recording, index, session)?;
        let stop = update.get("stopReason").and_then(Value::as_str);
        (state == "idle").then(|| (index, stop.unwrap_or_default().to_owned()))
    })?;
    let (end, stop) = found;
    Ok(Work { request, end, stop })
}

/// Waits for the session's work to end, which must be reported as cancelled.
pub(super) fn ended_cancelled(conn: &mut Conn, session: &str, request: usize) -> Outcome {
    let work = ended(conn, session, request)?;
    if work.stop == "cancelled" {
        return Ok(());
    }
    let reason = format!("the stop reason is {:?}, not \"cancelled\"", work.stop);
    Err(conn.at(work.end, reason))
}

/// A prompt from beginning to end.
pub(super) fn work(conn: &mut Conn, session: &str, word: &str) -> Outcome<Work> {
    let (request, _) = accepted(conn, session, word)?;
    ended(conn, session, request)
}

/// Starts the prompt `slow` and waits until the agent has said something.
pub(super) fn begin_slow(conn: &mut Conn, session: &str) -> Outcome<usize> {
    let (request, _) = accepted(conn, session, "slow")?;
    let limit = conn.env.turn_timeout;
    let busy = conn.wait(request, "output of the agent", limit, |recording, index| {
        if let Some(("idle", _)) = state(recording, index, session) {
            return Some(false);
        }
        let kind = kind(recording, index, session)?;
        (kind.starts_with("agent_") || kind.starts_with("tool_call")).then_some(true)
    })?;
    if busy {
        Ok(request)
    } else {
        inconclusive("the work on the prompt `slow` ended at once")
    }
}

/// The kind of the session's update at this place, if there is one.
pub(super) fn kind<'a>(recording: &'a Recording, index: usize, session: &str) -> Option<&'a str> {
    Some(update(recording, index, session)?.0)
}

/// The state that the session's update at this place reports.
pub(super) fn state<'a>(
    recording: &'a Recording,
    index: usize,
    session: &str,
) -> Option<(&'a str, &'a Value)> {
    let (kind, body) = update(recording, index, session)?;
    let state = body.get("state")?.as_str()?;
    (kind == "state_update").then_some((state, body))
}

fn update<'a>(
    recording: &'a Recording,
    index: usize,
    session: &str,
) -> Option<(&'a str, &'a Value)> {
    let mut updates = recording.updates();
    let found = updates.find(|update| update.index == index && update.session == session)?;
    Some((found.kind, found.body))
}

/// What the profile may have besides `slow`.
const WORDS: [&str; 5] = ["hello", "tool", "plan", "form", "url"];

fn say_all(conn: &mut Conn, session: &str) -> Outcome {
    for word in WORDS {
        if conn.word(&[word]).is_ok() {
            work(conn, session, word)?;
        }
    }
    Ok(())
}

/// Every prompt that matters here, to a client that can do nothing.
pub(crate) fn tour_of_nothing(cx: &mut Cx) -> Outcome {
    let conn = cx.fresh()?;
    let mut params = initialize(&json!(2));
    params["capabilities"] = json!({});
    conn.result("initialize", params)?;
    let session = conn.session()?;
    say_all(conn, &session)
}

/// Every prompt that matters here, so that there is something to look at.
pub(crate) fn tour(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    say_all(conn, &session)?;
    let request = begin_slow(conn, &session)?;
    conn.cancel(&session);
    ended(conn, &session, request)?;
    conn.settle()
}
