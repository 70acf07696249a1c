//! Prompts: accepted, worked on, ended by a state update.

use serde_json::Value;

use crate::harness::{Conn, Cx, Outcome, Recording, Turn, inconclusive, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::watch_all;
use crate::requirements::{Check, NamedCheck};
use crate::wire::{FindingKind, Party};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
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

/// The state that the session's update at this place reports.
fn state<'a>(recording: &'a Recording, index: usize, session: &str) -> Option<&'a str> {
    let (kind, body) = update(recording, index, session)?;
    body.get("state")?
        .as_str()
        .filter(|_| kind == "state_update")
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
    let recording = conn.recording();
    let answer = recording.result(turn.request);
    let wanted = answer.and_then(|answer| answer.get("messageId"));
    let mut echoed = (turn.request..=turn.end).filter_map(|index| {
        let (kind, body) = update(recording, index, &session)?;
        body.get("messageId")
            .filter(|_| kind.starts_with("user_message"))
    });
    // The agent may have changed its content.
    if wanted.is_some() && echoed.any(|id| Some(id) == wanted) {
        return Ok(());
    }
    let id = wanted.and_then(Value::as_str).unwrap_or("none");
    let reason = format!(
        "expected a `user_message` with the id of the answer, {id}, before the end of the work, got none"
    );
    Err(conn.at(turn.end, reason))
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
    let is_blocked = reported(conn, &session, turn.request, "requires_action");
    if is_blocked.is_none_or(|index| index > answer) {
        return skip("the agent did not report `requires_action`");
    }
    match reported(conn, &session, answer, "running") {
        Some(index) if index < turn.end => Ok(()),
        // The work may end without resuming.
        _ if !(answer..turn.end).any(|it| update(conn.recording(), it, &session).is_some()) => {
            inconclusive("nothing was done after the answer to the question")
        }
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
    let end = conn.turn_reply(request)?.index;
    let quiet = conn.env.quiet;
    conn.settle()?;
    conn.listen(quiet);
    let late = conn.since(end).find_map(|(index, entry)| {
        let mut late = entry.findings_by(Party::Agent, &[FindingKind::LateUpdate]);
        Some((index, late.next()?.message.clone()))
    });
    match late {
        Some((index, reason)) => Err(conn.at(index, reason)),
        None => Ok(()),
    }
}
