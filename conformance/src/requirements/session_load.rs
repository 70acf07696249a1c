//! Sessions that exist already: load, resume, close, delete.

use serde_json::{Value, json};

use super::{Check, Requirement, capability, info, should};
use crate::harness::{Conn, Outcome};
use crate::suite::Cx;

use Check::Run;

const LOAD: &str = "/loadSession";
const RESUME: &str = "/sessionCapabilities/resume";
const CLOSE: &str = "/sessionCapabilities/close";
const DELETE: &str = "/sessionCapabilities/delete";

pub(super) const ROWS: &[Requirement] = &[
    capability(
        "session-load.replays",
        "session-setup#loading-a-session",
        "The Agent MUST replay the entire conversation to the Client",
        Run(load_replays),
    ),
    capability(
        "session-load.answers-last",
        "session-setup#loading-a-session",
        "When all the conversation entries have been streamed to the Client, the Agent MUST respond",
        Run(load_answers_last),
    ),
    capability(
        "session-load.goes-on",
        "session-setup#loading-a-session",
        "The Client can then continue sending prompts as if the session was never interrupted.",
        Run(load_goes_on),
    ),
    should(
        "session-load.unknown-session",
        "schema#errorcode",
        "Resource not found",
        Run(load_unknown),
    ),
    capability(
        "session-load.resume-is-silent",
        "session-setup#resuming-a-session",
        "the Agent MUST NOT replay the conversation history via `session/update` notifications",
        Run(resume_is_silent),
    ),
    capability(
        "session-load.resume-goes-on",
        "session-setup#resuming-a-session",
        "it restores the session context, reconnects to the requested MCP servers, and returns",
        Run(resume_goes_on),
    ),
    should(
        "session-load.resume-unknown",
        "schema#errorcode",
        "Resource not found",
        Run(resume_unknown),
    ),
    capability(
        "session-load.close-answers",
        "session-setup#closing-a-session",
        "On success, the Agent responds with an empty result object",
        Run(close_answers),
    ),
    capability(
        "session-load.close-cancels",
        "session-setup#closing-a-session",
        "The Agent MUST cancel any ongoing work for that session as if `session/cancel` had been called",
        Run(close_cancels),
    ),
    info(
        "session-load.close-unknown",
        "session-setup#closing-a-session",
        "Agents MAY return an error if the session does not exist or is not currently active.",
        Run(close_unknown),
    ),
    capability(
        "session-load.delete-answers",
        "session-delete#deleting-a-session",
        "On success, the Agent returns an empty result",
        Run(delete_answers),
    ),
    capability(
        "session-load.delete-unlists",
        "session-delete#semantics",
        "Deleted sessions no longer appear in future `session/list` results.",
        Run(delete_unlists),
    ),
    should(
        "session-load.delete-twice",
        "session-delete#semantics",
        "Deleting an already-deleted session, or a session that never existed, SHOULD succeed silently.",
        Run(delete_twice),
    ),
    should(
        "session-load.delete-unknown",
        "session-delete#semantics",
        "Deleting an already-deleted session, or a session that never existed, SHOULD succeed silently.",
        Run(delete_unknown),
    ),
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
