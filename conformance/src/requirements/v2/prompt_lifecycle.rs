//! Prompts: accepted, worked on, ended by a state update.

use serde_json::Value;

use crate::harness::{Conn, Cx, Outcome, Recording, Turn, inconclusive, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::watch_all;
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("prompt-lifecycle.accepted", Run(accepted_at_once)),
    ("prompt-lifecycle.user-message", Run(user_message)),
    ("prompt-lifecycle.running", Run(running)),
    (
        "prompt-lifecycle.message-ids",
        watch_all(message_ids, "the agent sent no message"),
    ),
    ("prompt-lifecycle.requires-action", Run(requires_action)),
    ("prompt-lifecycle.resumes", Run(resumes)),
    (
        "prompt-lifecycle.silent-after-cancel",
        Run(silent_after_cancel),
    ),
];

fn accepted_at_once(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let request = conn.begin_slow(&session)?;
    conn.cancel(&session);
    conn.finish(request).map(drop)
}

/// The kind of the session's update at this place, with the update.
fn update<'a>(
    recording: &'a Recording,
    index: usize,
    session: &str,
) -> Option<(&'a str, &'a Value)> {
    let entry = recording.entries.get(index)?;
    let body = entry.params().get("update")?;
    let ours = entry.calls(Party::Agent, "session/update") && entry.session() == Some(session);
    Some((body.get("sessionUpdate")?.as_str()?, body)).filter(|_| ours)
}

fn kind<'a>(recording: &'a Recording, index: usize, session: &str) -> Option<&'a str> {
    Some(update(recording, index, session)?.0)
}

/// The state that the session's update at this place reports.
fn state<'a>(recording: &'a Recording, index: usize, session: &str) -> Option<&'a str> {
    let (kind, body) = update(recording, index, session)?;
    body.get("state")?
        .as_str()
        .filter(|_| kind == "state_update")
}

/// The update of this kind between the prompt and the end of the turn.
fn during(conn: &Conn, session: &str, turn: &Turn, start: &str) -> Option<usize> {
    let places = turn.request..=turn.end;
    places.into_iter().find(|index| {
        kind(conn.recording(), *index, session).is_some_and(|kind| kind.starts_with(start))
    })
}

/// The first report of this state from a place on.
fn reported(conn: &Conn, session: &str, from: usize, wanted: &str) -> Option<usize> {
    let is = |index: &usize| {
        let state = state(conn.recording(), *index, session);
        state == Some(wanted)
    };
    (from..conn.mark()).find(is)
}

fn user_message(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    match during(conn, &session, &turn, "user_message") {
        Some(_) => Ok(()),
        None => Err(conn.at(
            turn.end,
            "expected a `user_message` before the end of the work, got none",
        )),
    }
}

fn running(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    match reported(conn, &session, turn.request, "running") {
        Some(index) if index < turn.end => Ok(()),
        _ => Err(conn.at(
            turn.end,
            "expected the state `running` before the end of the work, got none",
        )),
    }
}

fn message_ids(view: &View<'_>) -> RuleResult {
    let messages = ["user_message", "agent_message", "agent_thought"];
    let about = |kind: &str| messages.iter().any(|start| kind.starts_with(start));
    let Some(update) = view.update().filter(|update| about(update.kind)) else {
        return Ok(0);
    };
    if update.body.get("messageId").is_some_and(Value::is_string) {
        return Ok(1);
    }
    violation(format!("expected `messageId` in {}, got none", update.kind))
}

/// Works on the prompt `tool` until it asks for permission. Yields the place of the question
/// and the turn.
fn asked(conn: &mut Conn, session: &str) -> Outcome<(usize, Turn)> {
    let word = conn.word(&["permission", "tool"])?;
    let turn = conn.prompt(session, word)?;
    let question = conn.since(turn.request).find(|(index, entry)| {
        *index < turn.end && entry.calls(Party::Agent, "session/request_permission")
    });
    match question.map(|(index, _)| index) {
        Some(index) => Ok((index, turn)),
        None => skip("the agent did not ask for permission"),
    }
}

fn requires_action(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let (question, turn) = asked(conn, &session)?;
    match reported(conn, &session, turn.request, "requires_action") {
        Some(index) if index < turn.end => Ok(()),
        _ => Err(conn.at(
            question,
            "expected the state `requires_action` while this was open, got none",
        )),
    }
}

fn resumes(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let (question, turn) = asked(conn, &session)?;
    let Some((answer, _)) = conn.recording().answer(question) else {
        return inconclusive("the question was not answered");
    };
    match reported(conn, &session, answer, "running") {
        Some(index) if index < turn.end => Ok(()),
        _ => Err(conn.at(
            turn.end,
            "expected the state `running` after the answer to the question, got none",
        )),
    }
}

fn silent_after_cancel(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let request = conn.begin_slow(&session)?;
    conn.cancel(&session);
    let turn = conn.finish(request)?;
    let quiet = conn.env.quiet;
    conn.settle()?;
    conn.listen(quiet);
    let late = (turn.end + 1..conn.mark()).find(|index| {
        let kind = kind(conn.recording(), *index, &session);
        kind.is_some_and(|kind| kind.starts_with("agent_") || kind.starts_with("tool_call"))
    });
    match late {
        Some(index) => Err(conn.at(
            index,
            "expected the output before the end is reported, got some after it",
        )),
        None => Ok(()),
    }
}
