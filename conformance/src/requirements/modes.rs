//! Session modes.

use serde_json::{Value, json};

use super::passive::{items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{Capability, Conn, Cx, Outcome, inconclusive, is_privileged, skip};
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
    ("modes.set-unknown", Run(set_unknown)),
    ("modes.set-during-a-turn", Run(set_during_a_turn)),
    (
        "modes.update-is-available",
        watch(update_is_available, "no current_mode_update"),
    ),
    ("modes.kept", Run(kept)),
];

fn current_is_available(view: &View<'_>) -> RuleResult {
    let state = view.setup().map(|(_, state)| state);
    let Some((state, current)) =
        state.and_then(|state| Some((state, text(state, "/modes/currentModeId")?)))
    else {
        return Ok(0);
    };
    if !ids(state).any(|id| id == current) {
        return violation(format!("{current} is not among the available modes"));
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

fn update_is_available(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("current_mode_update") else {
        return Ok(0);
    };
    // A session that was set up again may not have reported its modes again.
    let told =
        |session: &&Session| session.told && !(session.continued && session.modes.is_empty());
    let Some(session) = view.known(update.session).filter(told) else {
        return Ok(0);
    };
    let mode = text(update.body, "/currentModeId").unwrap_or_default();
    if !session.modes.contains(mode) {
        return violation(format!("{mode} is not among the available modes"));
    }
    Ok(1)
}

/// A new session with the modes that may be selected, the current one last.
fn with_modes(conn: &mut Conn) -> Outcome<(String, Vec<String>)> {
    let (session, state) = conn.new_session()?;
    let current = text(&state, "/modes/currentModeId");
    let all = conn.env.conditions.allow_privileged;
    let may_select = |mode: &&Value| all || !is_privileged(mode) || text(mode, "/id") == current;
    let modes = items(&state, "/modes/availableModes").filter(may_select);
    let modes = modes.filter_map(|mode| text(mode, "/id"));
    let mut modes: Vec<_> = modes.map(str::to_owned).collect();
    if modes.is_empty() {
        return skip("the agent has no modes");
    }
    modes.sort_by_key(|mode| Some(mode.as_str()) == current);
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

fn set_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, _) = with_modes(conn)?;
    let params = json!({"sessionId": session, "modeId": "acp-conformance-no-such-mode"});
    conn.refusal("session/set_mode", params).map(drop)
}

fn set_during_a_turn(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, modes) = with_modes(conn)?;
    let running = conn.begin_slow(&session)?;
    let mode = modes.first().cloned().unwrap_or_default();
    let set = conn.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": mode}),
    );
    conn.cancel(&session);
    conn.turn_reply(running)?;
    let set = set?;
    match set.answer {
        Ok(_) => Ok(()),
        Err(_) => Err(conn.at(set.index, "refused while the agent is generating")),
    }
}

fn kept(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::Resume)?;
    let (session, modes) = with_modes(conn)?;
    let Some(mode) = modes.first() else {
        return skip("the agent has no modes");
    };
    conn.result(
        "session/set_mode",
        json!({"sessionId": session, "modeId": mode}),
    )?;
    // Nothing obliges an agent to keep a session in which nothing was said.
    conn.prompt(&session, "hello")?;
    let state = conn.resumed(&session)?;
    match text(&state, "/modes/currentModeId") {
        None => inconclusive("the answer to session/resume does not tell the mode"),
        Some(current) if current == mode => Ok(()),
        Some(_) => Err(conn.at(conn.mark() - 1, "the resumed session is in another mode")),
    }
}
