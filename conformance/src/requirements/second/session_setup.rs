//! Sessions: new ones, old ones with and without their history, the end of one.

use serde_json::{Value, json};

use super::steps::{begin_slow, ended, ready, work};
use crate::harness::{Conn, Outcome};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("session-setup.unique-ids", Run(unique_ids)),
    ("session-setup.listed", Run(listed)),
    ("session-setup.no-match", Run(no_match)),
    ("session-setup.silent-resume", Run(silent_resume)),
    ("session-setup.replay", Run(replay)),
    ("session-setup.replayed-ids", Run(replayed_ids)),
    ("session-setup.close-cancels", Run(close_cancels)),
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
