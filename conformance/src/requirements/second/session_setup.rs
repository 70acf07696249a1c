//! Sessions: new ones, old ones with and without their history, the end of one.

use serde_json::{Value, json};

use super::steps::{begin_slow, ended, ready, work};
use crate::harness::{Conn, Outcome};
use crate::requirements::{Check, Requirement, must};
use crate::suite::Cx;

use Check::{Excluded, Run};

pub(super) const ROWS: &[Requirement] = &[
    must(
        "session-setup.unique-ids",
        "v2/session-setup#creating-a-session",
        "The Agent MUST respond with a unique Session ID that identifies this conversation",
        Run(unique_ids),
    ),
    must(
        "session-setup.listed",
        "v2/session-list#listing-sessions",
        "The Agent MUST respond with a list of sessions and optional pagination metadata",
        Run(listed),
    ),
    must(
        "session-setup.no-match",
        "v2/session-list#listing-sessions",
        "When no sessions match the criteria, the Agent MUST return an empty `sessions` array.",
        Run(no_match),
    ),
    must(
        "session-setup.silent-resume",
        "v2/session-setup#resuming-sessions",
        "When `replayFrom` is omitted or `null`, the Agent MUST NOT replay the conversation history",
        Run(silent_resume),
    ),
    must(
        "session-setup.replay",
        "v2/session-setup#resuming-sessions",
        "When `replayFrom.type` is `\"start\"`, the Agent MUST replay the entire conversation",
        Run(replay),
    ),
    must(
        "session-setup.replayed-ids",
        "v2/session-setup#resuming-sessions",
        "During replay, the Agent MUST include an opaque, unique `messageId`",
        Run(replayed_ids),
    ),
    must(
        "session-setup.close-cancels",
        "v2/session-setup#closing-active-sessions",
        "The Agent MUST cancel any ongoing work for that session as if `session/cancel` had been called",
        Run(close_cancels),
    ),
    must(
        "session-setup.working-directory",
        "v2/session-setup#working-directory",
        "MUST be used for the session regardless of where the Agent subprocess was spawned",
        Excluded("what directory the agent's tools use cannot be seen on the wire"),
    ),
];

fn unique_ids(cx: &mut Cx) -> Outcome {
    let (conn, first) = ready(cx)?;
    if conn.session()? == first {
        return Err(conn.at(conn.mark() - 1, "two sessions have the same id"));
    }
    Ok(())
}

fn sessions(conn: &mut Conn, params: Value) -> Outcome<Vec<Value>> {
    let result = conn.result("session/list", params)?;
    match result.get("sessions").and_then(Value::as_array) {
        Some(sessions) => Ok(sessions.clone()),
        None => Err(conn.at(conn.mark() - 1, "no list of sessions")),
    }
}

fn listed(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    // Some agents list a session only once something was said in it.
    work(conn, &session, "hello")?;
    sessions(conn, json!({})).map(drop)
}

fn no_match(cx: &mut Cx) -> Outcome {
    let (conn, _) = ready(cx)?;
    let nowhere = conn.env.folder.join("nobody-works-here");
    let found = sessions(conn, json!({"cwd": nowhere}))?;
    if found.is_empty() {
        return Ok(());
    }
    Err(conn.at(conn.mark() - 1, "sessions of another directory are listed"))
}

/// Says something in a session and resumes it. Yields the kinds of the updates of messages
/// that came before the answer, with their message ids.
fn resumed(conn: &mut Conn, session: &str, from: Value) -> Outcome<Vec<(String, Value)>> {
    work(conn, session, "hello")?;
    conn.settle()?;
    let mut params = conn.setup(Some(session));
    params["replayFrom"] = from;
    let request = conn.request("session/resume", params);
    let reply = conn.reply_within(request, conn.env.turn_timeout)?;
    if reply.answer.is_err() {
        return Err(conn.at(reply.index, "session/resume was refused"));
    }
    let updates = conn.recording().updates();
    let told = updates.filter(|update| {
        let messages = ["user_", "agent_", "tool_call"];
        let conversation = messages.iter().any(|start| update.kind.starts_with(start));
        conversation && update.session == session && (request..reply.index).contains(&update.index)
    });
    Ok(told
        .map(|update| {
            let id = update.body.get("messageId").cloned().unwrap_or_default();
            (update.kind.to_owned(), id)
        })
        .collect())
}

fn silent_resume(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    if resumed(conn, &session, Value::Null)?.is_empty() {
        return Ok(());
    }
    Err(conn.at(conn.mark() - 1, "the history was told, unasked for"))
}

fn replay(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let told = resumed(conn, &session, json!({"type": "start"}))?;
    for (who, start) in [("user", "user_message"), ("agent", "agent_message")] {
        if !told.iter().any(|(kind, _)| kind.starts_with(start)) {
            let reason = format!("no message of the {who} before the answer");
            return Err(conn.at(conn.mark() - 1, reason));
        }
    }
    Ok(())
}

fn replayed_ids(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let told = resumed(conn, &session, json!({"type": "start"}))?;
    let message = |kind: &str| kind.starts_with("user_") || kind.starts_with("agent_");
    match told
        .iter()
        .find(|(kind, id)| message(kind) && !id.is_string())
    {
        Some((kind, _)) => {
            let reason = format!("the replay has a {kind} without `messageId`");
            Err(conn.at(conn.mark() - 1, reason))
        }
        None => Ok(()),
    }
}

fn close_cancels(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let request = begin_slow(conn, &session)?;
    conn.result("session/close", json!({"sessionId": session}))?;
    let work = ended(conn, &session, request)?;
    if work.stop == "cancelled" {
        return Ok(());
    }
    Err(conn.at(work.end, "the work was not reported as cancelled"))
}
