//! Sessions that exist already: load, resume, close, delete.

use serde_json::{Value, json};

use super::{Check, NamedCheck};
use crate::harness::{Conn, Outcome};
use crate::suite::Cx;

use Check::Run;

const LOAD: &str = "/loadSession";
const RESUME: &str = "/sessionCapabilities/resume";
const CLOSE: &str = "/sessionCapabilities/close";
const DELETE: &str = "/sessionCapabilities/delete";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-load.replays", Run(load_replays)),
    ("session-load.answers-last", Run(load_answers_last)),
    ("session-load.goes-on", Run(load_goes_on)),
    ("session-load.unknown-session", Run(load_unknown)),
    ("session-load.resume-is-silent", Run(resume_is_silent)),
    ("session-load.resume-goes-on", Run(resume_goes_on)),
    ("session-load.resume-unknown", Run(resume_unknown)),
    ("session-load.close-answers", Run(close_answers)),
    ("session-load.close-cancels", Run(close_cancels)),
    ("session-load.close-unknown", Run(close_unknown)),
    ("session-load.delete-answers", Run(delete_answers)),
    ("session-load.delete-unlists", Run(delete_unlists)),
    ("session-load.delete-twice", Run(delete_twice)),
    ("session-load.delete-unknown", Run(delete_unknown)),
];

/// The kinds of update that a conversation consists of.
const CONVERSATION: [&str; 5] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
];

/// A session with one finished turn.
fn talked(conn: &mut Conn) -> Outcome<String> {
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    // What the turn had to say has been said, so that it is no replay.
    conn.settle()?;
    Ok(session)
}

/// Sets the session up again and yields where that began and ended.
fn again(conn: &mut Conn, method: &str, session: &str) -> Outcome<(usize, usize)> {
    let params = conn.setup(Some(session));
    let request = conn.request(method, params);
    let reply = conn.reply_within(request, conn.env.turn_timeout)?;
    match reply.answer {
        Ok(_) => Ok((request, reply.index)),
        Err(_) => Err(conn.at(reply.index, format!("{method} was refused"))),
    }
}

/// The conversation's kinds of update between two places.
fn told<'a>(conn: &'a Conn, session: &str, from: usize, to: usize) -> Vec<(usize, &'a str)> {
    conn.recording()
        .updates()
        .filter(|update| (from..to).contains(&update.index) && update.session == session)
        .filter(|update| CONVERSATION.contains(&update.kind))
        .map(|update| (update.index, update.kind))
        .collect()
}

fn load_replays(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LOAD)?;
    let session = talked(conn)?;
    let (from, to) = again(conn, "session/load", &session)?;
    let told = told(conn, &session, from, to);
    for kind in ["user_message_chunk", "agent_message_chunk"] {
        if !told.iter().any(|(_, seen)| *seen == kind) {
            return Err(conn.at(to, format!("the replay has no {kind}")));
        }
    }
    Ok(())
}

fn load_answers_last(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LOAD)?;
    let session = talked(conn)?;
    let (_, end) = again(conn, "session/load", &session)?;
    conn.settle()?;
    match told(conn, &session, end, conn.mark()).first() {
        Some((index, kind)) => Err(conn.at(*index, format!("{kind} after the answer"))),
        None => Ok(()),
    }
}

fn load_goes_on(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LOAD)?;
    let session = talked(conn)?;
    again(conn, "session/load", &session)?;
    conn.prompt(&session, "hello").map(drop)
}

fn load_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LOAD)?;
    unknown(conn, "session/load")
}

fn unknown(conn: &mut Conn, method: &str) -> Outcome {
    let params = conn.setup(Some("acp-conformance-no-such-session"));
    let reply = conn.refusal(method, params)?;
    conn.has_code(&reply, -32002)
}

fn resume_is_silent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(RESUME)?;
    let session = talked(conn)?;
    let (from, to) = again(conn, "session/resume", &session)?;
    match told(conn, &session, from, to).first() {
        Some((index, kind)) => Err(conn.at(*index, format!("{kind} before the answer"))),
        None => Ok(()),
    }
}

fn resume_goes_on(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(RESUME)?;
    let session = talked(conn)?;
    again(conn, "session/resume", &session)?;
    conn.prompt(&session, "hello").map(drop)
}

fn resume_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(RESUME)?;
    unknown(conn, "session/resume")
}

fn close_answers(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(CLOSE)?;
    let session = conn.session()?;
    let result = conn.result("session/close", json!({"sessionId": session}))?;
    empty(conn, &result)
}

fn empty(conn: &Conn, result: &Value) -> Outcome {
    match result.as_object() {
        Some(members) if members.keys().all(|name| name == "_meta") => Ok(()),
        _ => Err(conn.at(conn.mark() - 1, "the result is not an empty object")),
    }
}

fn close_cancels(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(CLOSE)?;
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let close = conn.request("session/close", json!({"sessionId": session}));
    conn.answer_held();
    let turn = conn.finish(running)?;
    conn.reply(close)?;
    if turn.stop == "cancelled" {
        Ok(())
    } else {
        let reason = format!("the turn ended with {}, not cancelled", turn.stop);
        Err(conn.at(turn.end, reason))
    }
}

fn close_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(CLOSE)?;
    let params = json!({"sessionId": "acp-conformance-no-such-session"});
    conn.refusal("session/close", params).map(drop)
}

fn delete_answers(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(DELETE)?;
    let session = talked(conn)?;
    let result = conn.result("session/delete", json!({"sessionId": session}))?;
    empty(conn, &result)
}

fn delete_unlists(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(DELETE)?;
    conn.needs("/sessionCapabilities/list")?;
    let session = talked(conn)?;
    conn.result("session/delete", json!({"sessionId": session}))?;
    let listed = super::session_list::listed(conn, None)?;
    if listed
        .iter()
        .any(|info| info.get("sessionId") == Some(&json!(session)))
    {
        return Err(conn.at(conn.mark() - 1, "the deleted session is listed"));
    }
    Ok(())
}

fn delete_twice(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(DELETE)?;
    let session = talked(conn)?;
    conn.result("session/delete", json!({"sessionId": session}))?;
    conn.result("session/delete", json!({"sessionId": session}))
        .map(drop)
}

fn delete_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(DELETE)?;
    let params = json!({"sessionId": "acp-conformance-no-such-session"});
    conn.result("session/delete", params).map(drop)
}
