//! Prompts: accepted, worked on, ended by a state update.

use serde_json::Value;

use super::steps::{Work, begin_slow, ended, ended_cancelled, kind, ready, state, work};
use crate::harness::{Conn, Outcome, inconclusive};
use crate::requirements::watch::watch_all;
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
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
    ("prompt-lifecycle.stop-reason", Run(stop_reason)),
    (
        "prompt-lifecycle.idle-takes-prompts",
        Run(idle_takes_prompts),
    ),
    ("prompt-lifecycle.requires-action", Run(requires_action)),
    ("prompt-lifecycle.resumes", Run(resumes)),
    ("prompt-lifecycle.cancelled", Run(cancelled)),
    (
        "prompt-lifecycle.silent-after-cancel",
        Run(silent_after_cancel),
    ),
];

fn accepted_at_once(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let request = begin_slow(conn, &session)?;
    conn.cancel(&session);
    ended(conn, &session, request).map(drop)
}

/// The update of this kind between the prompt and the end of the work.
fn during(conn: &Conn, session: &str, work: &Work, start: &str) -> Option<usize> {
    let places = work.request..=work.end;
    places.into_iter().find(|index| {
        kind(conn.recording(), *index, session).is_some_and(|kind| kind.starts_with(start))
    })
}

/// The first report of this state from a place on.
fn reported(conn: &Conn, session: &str, from: usize, wanted: &str) -> Option<usize> {
    let is = |index: &usize| {
        let state = state(conn.recording(), *index, session);
        state.is_some_and(|(state, _)| state == wanted)
    };
    (from..conn.mark()).find(is)
}

fn user_message(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let work = work(conn, &session, "hello")?;
    match during(conn, &session, &work, "user_message") {
        Some(_) => Ok(()),
        None => Err(conn.at(work.end, "the work ended, and no `user_message` had come")),
    }
}

fn running(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let work = work(conn, &session, "hello")?;
    match reported(conn, &session, work.request, "running") {
        Some(index) if index < work.end => Ok(()),
        _ => Err(conn.at(
            work.end,
            "the work ended without having begun: no `running`",
        )),
    }
}

fn message_ids(view: &View<'_>) -> Seen {
    let messages = ["user_message", "agent_message", "agent_thought"];
    let about = |kind: &str| messages.iter().any(|start| kind.starts_with(start));
    let Some(update) = view.update().filter(|update| about(update.kind)) else {
        return Ok(0);
    };
    if update.body.get("messageId").is_some_and(Value::is_string) {
        return Ok(1);
    }
    fault(format!("a {} without `messageId`", update.kind))
}

fn stop_reason(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let work = work(conn, &session, "hello")?;
    if work.stop.is_empty() {
        return Err(conn.at(work.end, "the work ended without a stop reason"));
    }
    Ok(())
}

fn idle_takes_prompts(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    work(conn, &session, "hello")?;
    work(conn, &session, "hello").map(drop)
}

/// Works on the prompt `tool` until it asks for permission. Yields the place of the question
/// and the work.
fn asked(conn: &mut Conn, session: &str) -> Outcome<(usize, Work)> {
    conn.word(&["tool"])?;
    let work = work(conn, session, "tool")?;
    let question = conn.since(work.request).find(|(index, entry)| {
        *index < work.end && entry.calls(Party::Agent, "session/request_permission")
    });
    match question.map(|(index, _)| index) {
        Some(index) => Ok((index, work)),
        None => inconclusive("the agent did not ask for permission"),
    }
}

fn requires_action(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let (question, work) = asked(conn, &session)?;
    match reported(conn, &session, work.request, "requires_action") {
        Some(index) if index < work.end => Ok(()),
        _ => Err(conn.at(question, "no `requires_action` while this was open")),
    }
}

fn resumes(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let (question, work) = asked(conn, &session)?;
    let Some((answer, _)) = conn.recording().answer(question) else {
        return inconclusive("the question was not answered");
    };
    match reported(conn, &session, answer, "running") {
        Some(index) if index < work.end => Ok(()),
        _ => Err(conn.at(work.end, "no `running` after the question was answered")),
    }
}

fn cancelled(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let request = begin_slow(conn, &session)?;
    conn.cancel(&session);
    ended_cancelled(conn, &session, request)
}

fn silent_after_cancel(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let request = begin_slow(conn, &session)?;
    conn.cancel(&session);
    let work = ended(conn, &session, request)?;
    let quiet = conn.env.quiet;
    conn.settle()?;
    conn.listen(quiet);
    let late = (work.end + 1..conn.mark()).find(|index| {
        let kind = kind(conn.recording(), *index, &session);
        kind.is_some_and(|kind| kind.starts_with("agent_") || kind.starts_with("tool_call"))
    });
    match late {
        Some(index) => Err(conn.at(index, "output came after the end was reported")),
        None => Ok(()),
    }
}
