//! Sessions that exist already: load, resume, close, delete.

use serde_json::{Value, json};

use super::conversation::Conversation;
use super::{Check, NamedCheck};
use crate::harness::{Capability, Conn, Cx, Outcome, Update, skip};
use crate::wire::{Version, is_conversation};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-load.replays", Run(load_replays)),
    ("session-load.survives-restart", Run(survives_restart)),
    ("session-load.answers-last", Run(load_answers_last)),
    ("session-load.resume-is-silent", Run(resume_is_silent)),
    ("session-load.close-cancels", Run(close_cancels)),
    ("session-load.delete-answers", Run(delete_answers)),
    ("session-load.delete-twice", Run(delete_twice)),
    ("session-load.delete-unlists", Run(delete_unlists)),
];

/// The end of a replay between two places: its marker, after which updates are live, or the answer.
fn end_of_replay(conn: &Conn, session: &str, from: usize, to: usize) -> usize {
    let mut updates = conn.recording().updates();
    let marker = updates.find(|update| {
        let is_within = (from..to).contains(&update.index) && update.session == session;
        is_within && update.kind == "replay_complete"
    });
    marker.map_or(to, |marker| marker.index)
}

/// A session with one finished turn.
fn talked(conn: &mut Conn) -> Outcome<String> {
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    // What the turn had to say has been said, so that it is no replay.
    conn.settle()?;
    Ok(session)
}

/// The conversation's kinds of update between two places.
fn reported<'a>(conn: &'a Conn, session: &str, from: usize, to: usize) -> Vec<(usize, &'a str)> {
    conn.recording()
        .updates()
        .filter(|update| (from..to).contains(&update.index) && update.session == session)
        .filter(|update| is_conversation(update.kind))
        .map(|update| (update.index, update.kind))
        .collect()
}

/// The first update between two places that tells a part of this conversation again. A greeting of the
/// agent is none.
fn told_again<'a>(
    conn: &'a Conn,
    session: &str,
    live: &Conversation,
    from: usize,
    to: usize,
) -> Option<Update<'a>> {
    let updates = conn.recording().updates();
    let ours =
        updates.filter(|update| (from..to).contains(&update.index) && update.session == session);
    live.retold(ours).first().copied()
}

/// A session with what a replay can show, a tool call if the profile has the word for one. Yields
/// its id, the prompts and the conversation. In v2 no prompts: messages have ids, and their content
/// may differ from what was sent.
fn conversed(conn: &mut Conn) -> Outcome<(String, Vec<String>, Conversation)> {
    let session = conn.session()?;
    let (mut live, mut prompts) = (Conversation::default(), Vec::new());
    for word in ["hello", "tool"] {
        if let Some(text) = conn.env.profile.prompt(word, &conn.env.folder) {
            let turn = conn.prompt(&session, word)?;
            // What comes outside of a turn belongs to none, and is another row's question.
            let recording = conn.recording();
            live.append(Conversation::between(
                recording,
                &session,
                turn.request,
                turn.end,
            ));
            prompts.push(text);
        }
    }
    if prompts.is_empty() {
        return skip("the profile has no prompt `hello` or `tool`");
    }
    conn.settle()?;
    if conn.version() == Version::V2 {
        prompts.clear();
    }
    Ok((session, prompts, live))
}

fn load_replays(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LOAD)?;
    let (session, prompts, live) = conversed(conn)?;
    // Another conversation, of which the replay must have nothing.
    let other = conn.session()?;
    let word = conn.word(&["hello", "tool"])?;
    let text = conn.env.profile.prompt(word, &conn.env.folder);
    let foreign = format!("{} Once more, please.", text.unwrap_or_default());
    let request = conn.begin_with(&other, json!([{"type": "text", "text": foreign}]))?;
    conn.finish(request)?;
    conn.settle()?;
    let (from, to) = conn.load(&session)?;
    let to = end_of_replay(conn, &session, from, to);
    let reported = reported(conn, &session, from, to);
    for (who, start) in [("user", "user_message"), ("agent", "agent_message")] {
        let is_due = start == "user_message" || !live.agent.is_empty();
        if is_due && !reported.iter().any(|(_, seen)| seen.starts_with(start)) {
            let reason = format!("expected a message of the {who} in the replay, got none");
            return Err(conn.at(to, reason));
        }
    }
    let replay = Conversation::between(conn.recording(), &session, from, to);
    match live.differs(&prompts, &[foreign], &replay) {
        Some(reason) => Err(conn.at(to, reason)),
        None => Ok(()),
    }
}

fn survives_restart(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    conn.needs(Capability::LOAD)?;
    let (session, prompts, live) = conversed(conn)?;
    cx.end_fresh();
    let conn = cx.connected()?;
    let (request, reply) = conn.try_load(&session)?;
    if conn.can(Capability::DELETE) {
        // Nobody else removes a session of another connection.
        conn.request("session/delete", json!({"sessionId": session}));
    }
    if reply.answer.is_err() {
        // The pages say what loading is for, and nothing of what an agent must keep.
        return skip("the agent does not keep sessions beyond its process");
    }
    let end = end_of_replay(conn, &session, request, reply.index);
    let replay = Conversation::between(conn.recording(), &session, request, end);
    match live.differs(&prompts, &[], &replay) {
        Some(reason) => Err(conn.at(reply.index, reason)),
        None => Ok(()),
    }
}

fn load_answers_last(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LOAD)?;
    let session = talked(conn)?;
    let live = Conversation::between(conn.recording(), &session, 0, conn.mark());
    let (from, end) = conn.load(&session)?;
    if end_of_replay(conn, &session, from, end) < end {
        // What comes after its marker is no replay.
        return Ok(());
    }
    conn.settle()?;
    match told_again(conn, &session, &live, end, conn.mark()) {
        Some(update) => Err(conn.at(
            update.index,
            format!(
                "expected the replay before the answer, got {} after it",
                update.kind
            ),
        )),
        None => Ok(()),
    }
}

fn resume_is_silent(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::RESUME)?;
    let session = talked(conn)?;
    let live = Conversation::between(conn.recording(), &session, 0, conn.mark());
    let (from, to) = conn.resume(&session)?;
    match told_again(conn, &session, &live, from, to) {
        Some(update) => Err(conn.at(
            update.index,
            format!("expected no replay before the answer, got {}", update.kind),
        )),
        None => Ok(()),
    }
}

fn close_cancels(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::CLOSE)?;
    let session = conn.session()?;
    let running = conn.begin_slow(&session)?;
    let close = conn.request("session/close", json!({"sessionId": session}));
    conn.answer_held();
    let turn = conn.finish(running)?;
    let closed = conn.reply(close)?;
    if conn.version() == Version::V2 && closed.index < turn.end {
        return Err(conn.at(
            closed.index,
            "expected the end of the work before the answer to session/close, got it after the answer",
        ));
    }
    if turn.stop == "cancelled" {
        Ok(())
    } else {
        let reason = format!("expected the stop reason cancelled, got {}", turn.stop);
        Err(conn.at(turn.end, reason))
    }
}

/// Deletes a session that had a turn, after closing it, for the page leaves open what the deletion of
/// an active session does. Yields its id, the place of the answer and the result.
fn deleted(conn: &mut Conn) -> Outcome<(String, usize, Value)> {
    conn.needs(Capability::DELETE)?;
    let session = talked(conn)?;
    let params = json!({"sessionId": session});
    let closes = conn.can(Capability::CLOSE);
    // Whether it is closed is another row's question.
    let is_active = !closes || conn.call("session/close", params.clone())?.answer.is_err();
    let reply = conn.call("session/delete", params)?;
    match reply.answer {
        Ok(result) => Ok((session, reply.index, result)),
        Err(_) if is_active => {
            skip("the agent deletes no active session, which it may refuse, and closes none")
        }
        Err(_) => Err(conn.at(
            reply.index,
            "expected a result of session/delete for a closed session, got an error",
        )),
    }
}

fn delete_answers(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, place, result) = deleted(conn)?;
    conn.is_empty_object(place, &result)
}

fn delete_twice(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, ..) = deleted(conn)?;
    conn.result("session/delete", json!({"sessionId": session}))
        .map(drop)
}

fn delete_unlists(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let (session, ..) = deleted(conn)?;
    let listed = super::session_list::listed(conn, None)?;
    if listed
        .iter()
        .any(|info| info.get("sessionId") == Some(&json!(session)))
    {
        return Err(conn.at(
            conn.mark() - 1,
            "expected a list without the deleted session, got it in the list",
        ));
    }
    Ok(())
}
