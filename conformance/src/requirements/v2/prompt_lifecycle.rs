//! Prompts: accepted, worked on, ended by a state update.

use serde_json::Value;

use crate::harness::{Conn, Consent, Cx, Outcome, Recording, Stop, inconclusive, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::{text, watch_all};
use crate::requirements::tool_calls::{Asking, asking};
use crate::requirements::{Check, NamedCheck};
use crate::wire::{FindingKind, Party, is_output};

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
    let opened = conn.mark();
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    // The prompt may join work that the agent has begun by itself.
    let states = (opened..turn.end).rev();
    let states = states.filter_map(|index| state(conn.recording(), index, &session));
    let mut since_idle = states.take_while(|state| *state != "idle");
    match since_idle.any(|state| state == "running") {
        true => Ok(()),
        false => Err(conn.at(
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

fn requires_action(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let Asking {
        session,
        running,
        asked,
    } = asking(conn, Consent::Hold)?;
    let limit = conn.env.timeout;
    let what = "the state `requires_action`";
    let blocked = conn.wait(running, what, limit, |recording, index| {
        state(recording, index, &session).filter(|state| *state == "requires_action")?;
        Some(())
    });
    match blocked {
        Err(Stop::Fail(_)) if !conn.has_ended() => {
            return Err(conn.at(
                asked,
                "expected the state `requires_action` while this was open, got none",
            ));
        }
        blocked => blocked?,
    }
    conn.cancel(&session);
    // How the turn ends is for other requirements.
    conn.turn_reply(running).ok();
    Ok(())
}

fn resumes(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let Asking {
        session,
        running,
        asked,
    } = asking(conn, Consent::Allow)?;
    let turn = conn.finish(running)?;
    let Some((answer, _)) = conn.recording().answer(asked) else {
        return inconclusive("the question was not answered");
    };
    let mut states = (running..answer)
        .rev()
        .filter_map(|index| state(conn.recording(), index, &session));
    if states.next() != Some("requires_action") {
        return skip("the agent did not report `requires_action` until the answer");
    }
    let resumed = reported(conn, &session, answer, "running");
    if resumed.is_some_and(|index| index < turn.end) {
        return Ok(());
    }
    let goes_on = |index: &usize| {
        let update = update(conn.recording(), *index, &session);
        update.is_some_and(|(kind, body)| is_progress(kind, body))
    };
    match (answer..turn.end).find(goes_on) {
        // The work may end without resuming.
        None => inconclusive("nothing was done after the answer to the question"),
        Some(index) => Err(conn.at(
            index,
            "expected the state `running` after the answer to the question, got none",
        )),
    }
}

/// Whether an update shows that foreground work goes on. That a call has failed or was cancelled may be the
/// end of it.
fn is_progress(kind: &str, update: &Value) -> bool {
    let status = text(update, "/status");
    is_output(kind) && !matches!(status, Some("failed" | "cancelled" | "pending"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_that_ends_does_not_go_on() {
        let call = |status: &str| is_progress("tool_call_update", &json!({"status": status}));
        assert!(call("in_progress") && call("completed"));
        assert!(!call("failed") && !call("cancelled") && !call("pending"));
        assert!(is_progress(
            "agent_message_chunk",
            &json!({"messageId": "m"})
        ));
        for kind in [
            "state_update",
            "usage_update",
            "session_info_update",
            "user_message",
        ] {
            assert!(!is_progress(kind, &json!({})), "{kind}");
        }
    }
}
