//! Session modes.

use serde_json::{Value, json};

use super::option_lists::last_update;
use super::passive::{items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Cx, Outcome, inconclusive, is_privileged, skip};
use crate::passive::{RuleResult, Session, View, violation};

use Check::Run;

const NONE: &str = "no session has modes";

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "modes.current-is-available",
        watch(current_is_available, NONE),
    ),
    ("modes.unique-id", watch(unique_id, NONE)),
    ("modes.set", Run(set)),
    (
        "modes.update-is-available",
        watch(update_is_available, "no current_mode_update"),
    ),
    ("modes.kept", Run(kept)),
    ("modes.update-agrees", Run(update_agrees)),
];

fn current_is_available(view: &View<'_>) -> RuleResult {
    let state = view.setup().map(|(_, state)| state);
    let Some((state, current)) =
        state.and_then(|state| Some((state, text(state, "/modes/currentModeId")?)))
    else {
        return Ok(0);
    };
    if !ids(state).any(|id| id == current) {
        return violation(format!(
            "expected one of the available modes, got {current}"
        ));
    }
    Ok(1)
}

fn ids(state: &Value) -> impl Iterator<Item = &str> {
    items(state, "/modes/availableModes").filter_map(|mode| text(mode, "/id"))
}

fn unique_id(view: &View<'_>) -> RuleResult {
    let state = view.setup().map(|(_, state)| state);
    unique("modes", state.into_iter().flat_map(ids))
}

/// The mode of a `current_mode_update`. The page shows it as `modeId`; the name in the schema is for
/// another row to judge.
pub(super) fn updated(update: &Value) -> Option<&str> {
    text(update, "/currentModeId").or_else(|| text(update, "/modeId"))
}

fn update_is_available(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("current_mode_update") else {
        return Ok(0);
    };
    // A session that was set up again may not have reported its modes again.
    let reported =
        |session: &&Session| session.reported && !(session.continued && session.modes.is_empty());
    let Some(session) = view.known(update.session).filter(reported) else {
        return Ok(0);
    };
    let mode = updated(update.body).unwrap_or_default();
    if !session.modes.contains(mode) {
        return violation(format!("expected one of the available modes, got {mode}"));
    }
    Ok(1)
}

/// The modes that may be selected, the current one last.
pub(super) fn selectable(conn: &Conn, state: &Value) -> Vec<String> {
    let current = text(state, "/modes/currentModeId");
    let all = conn.env.conditions.allow_privileged;
    let may_select = |mode: &&Value| all || !is_privileged(mode) || text(mode, "/id") == current;
    let modes = items(state, "/modes/availableModes").filter(may_select);
    let modes = modes.filter_map(|mode| text(mode, "/id"));
    let mut modes: Vec<_> = modes.map(str::to_owned).collect();
    modes.sort_by_key(|mode| Some(mode.as_str()) == current);
    modes
}

/// A new session with the modes that may be selected, the current one last.
pub(super) fn with_modes(conn: &mut Conn) -> Outcome<(String, Vec<String>)> {
    let (session, state) = conn.new_session()?;
    let modes = selectable(conn, &state);
    if modes.is_empty() {
        return skip("the agent has no modes");
    }
    Ok((session, modes))
}

fn set(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, modes) = with_modes(conn)?;
    for mode in modes {
        conn.result(
            "session/set_mode",
            json!({"sessionId": session, "modeId": mode}),
        )?;
    }
    Ok(())
}

/// A new session in another mode, if there is one. Yields the session, the mode and the place of the
/// first message after the request.
fn in_another_mode(conn: &mut Conn) -> Outcome<(String, String, usize)> {
    let (session, modes) = with_modes(conn)?;
    let mode = modes.into_iter().next().unwrap_or_default();
    let mark = conn.mark();
    select(conn, &session, &mode)?;
    Ok((session, mode, mark))
}

/// Sets a mode.
///
/// # Errors
/// Inconclusive when the agent refuses it, which other rows judge.
pub(super) fn select(conn: &mut Conn, session: &str, mode: &str) -> Outcome {
    let params = json!({"sessionId": session, "modeId": mode});
    match conn.call("session/set_mode", params)?.answer {
        Ok(_) => Ok(()),
        Err(_) => inconclusive("the agent refuses a mode that the session has"),
    }
}

fn kept(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, mut mode, _) = in_another_mode(conn)?;
    let mark = conn.mark();
    // Nothing obliges an agent to keep a session in which nothing was said.
    conn.prompt(&session, "hello")?;
    // It may change to another mode meanwhile, and reports it.
    let reported = last_update(conn, &session, "current_mode_update", mark);
    if let Some(current) = reported.and_then(|(_, update)| updated(update)) {
        current.clone_into(&mut mode);
    }
    for (method, index, state) in conn.reopened(&session)? {
        match text(&state, "/modes/currentModeId") {
            None => return skip(format!("the answer to {method} does not tell the mode")),
            Some(current) if current == mode => {}
            Some(current) => {
                let reason = format!("expected the mode {mode} after {method}, got {current}");
                return Err(conn.at(index, reason));
            }
        }
    }
    Ok(())
}

fn update_agrees(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, mode, mark) = in_another_mode(conn)?;
    conn.settle()?;
    let reported = last_update(conn, &session, "current_mode_update", mark);
    match reported.map(|(index, update)| (index, updated(update))) {
        None => skip("the agent sends no current_mode_update when its mode is set"),
        Some((_, Some(current))) if current == mode => Ok(()),
        Some((index, current)) => {
            let current = current.unwrap_or("none");
            let reason = format!("expected the mode {mode}, which was set, got {current}");
            Err(conn.at(index, reason))
        }
    }
}
