//! Lists of config options: complete whenever they are reported, and in step with the modes.

use std::collections::BTreeSet;

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::config_options::{SET, id_of, named, offered, set, set_to, value_of, with_select};
use super::passive::{items, text, watch};
use super::{Check, NamedCheck, modes};
use crate::harness::{Conn, Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::wire::Party;

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("config-options.complete", Run(complete)),
    ("config-options.complete-update", Run(complete_update)),
    ("config-options.set-unknown", Run(set_unknown)),
    ("config-options.set-unlisted-value", Run(set_unlisted_value)),
    (
        "config-options.modes-too",
        watch(
            modes_too,
            "no session has modes or an option of the category `mode`",
        ),
    ),
    ("config-options.modes-in-sync", Run(modes_in_sync)),
];

/// The ids of the options that the agent tells.
fn names(state: &Value) -> BTreeSet<&str> {
    items(state, "/configOptions")
        .filter_map(|option| id_of(option))
        .collect()
}

/// Ids in words.
fn listed(ids: &BTreeSet<&str>) -> String {
    let ids: Vec<_> = ids.iter().copied().collect();
    format!("[{}]", ids.join(", "))
}

/// The last update of this kind of a session from a place on: its place and itself.
pub(super) fn last_update<'a>(
    conn: &'a Conn,
    session: &str,
    kind: &'a str,
    from: usize,
) -> Option<(usize, &'a Value)> {
    let updates = conn.recording().updates_of(kind);
    let ours = updates.filter(|update| update.index >= from && update.session == session);
    ours.last().map(|update| (update.index, update.body))
}

fn complete(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, before, params) = with_select(conn)?;
    is_reported_as_before(conn, &session, &before, &params)?;
    let after = set(conn, params.clone())?;
    let (place, id) = (
        conn.mark() - 1,
        text(&params, "/configId").unwrap_or_default(),
    );
    // One option may change which others there are, but not itself.
    let reported = names(&after);
    let lost = || {
        names(&before)
            .into_iter()
            .filter(|id| !reported.contains(id))
    };
    let mut missing = (!reported.contains(id)).then_some(id);
    for other in lost() {
        let set = setting(conn, &session, other, value_of(&before, other));
        // What can be set and is listed then is an option still.
        if let Ok(answer) = conn.call(SET, set)?.answer
            && names(&answer).contains(other)
        {
            missing = Some(other);
        }
    }
    match missing {
        None => Ok(()),
        Some(missing) => Err(conn.at(
            place,
            format!(
                "expected all options in the answer, with {missing}, got {}",
                listed(&reported)
            ),
        )),
    }
}

/// The params that set an option to the value that it was reported with.
fn setting(conn: &Conn, session: &str, id: &str, value: Option<&Value>) -> Value {
    match value {
        Some(Value::Bool(value)) => {
            json!({"sessionId": session, "configId": id, "type": "boolean", "value": value})
        }
        value => {
            let value = value.and_then(Value::as_str).unwrap_or_default();
            set_to(conn.version(), session, id, value)
        }
    }
}

/// An option that is set to the value that it has changes nothing, so the answer is the list that was
/// reported before: when the session was opened, or by an update since.
fn is_reported_as_before(
    conn: &mut Conn,
    session: &str,
    opened: &Value,
    params: &Value,
) -> Outcome {
    conn.settle()?;
    let reported = last_update(conn, session, "config_option_update", 0);
    let known = reported.map_or(opened, |(_, reported)| reported).clone();
    let id = text(params, "/configId").unwrap_or_default();
    let mut same = params.clone();
    same["value"] = value_of(&known, id).cloned().unwrap_or_default();
    let reply = conn.call(SET, same)?;
    // Nothing obliges an agent to take it.
    let Ok(answer) = reply.answer else {
        return Ok(());
    };
    match difference(&known, &answer, id) {
        Some(reason) => Err(conn.at(reply.index, reason)),
        None => Ok(()),
    }
}

/// What an answer lacks of the options that were known, other than the value of the one that was set.
fn difference(known: &Value, answer: &Value, set: &str) -> Option<String> {
    let (ids, reported) = (names(known), names(answer));
    if !ids.is_subset(&reported) {
        return Some(format!(
            "expected the options {} in the answer, got {}",
            listed(&ids),
            listed(&reported)
        ));
    }
    let other = ids
        .into_iter()
        .find(|id| *id != set && value_of(known, id) != value_of(answer, id))?;
    Some(format!(
        "expected the value {} of {other}, which was not set, got {}",
        named(value_of(known, other)),
        named(value_of(answer, other))
    ))
}

fn complete_update(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, _, params) = with_select(conn)?;
    let mark = conn.mark();
    set(conn, params.clone())?;
    if conn.word(&["config"]).is_ok() {
        conn.prompt(&session, "config")?;
    }
    conn.settle()?;
    let Some((index, update)) = last_update(conn, &session, "config_option_update", mark) else {
        return skip("not exercised: no config_option_update; the prompt `config` may cause one");
    };
    let update = update.clone();
    // The answer to a set that changes nothing lists what the update should have listed.
    let id = text(&params, "/configId").unwrap_or_default();
    let value = value_of(&update, id).or_else(|| params.get("value"));
    let mut same = params.clone();
    same["value"] = value.cloned().unwrap_or_default();
    let reply = conn.call(SET, same)?;
    let Ok(answer) = reply.answer else {
        return Ok(());
    };
    // Options may have changed once more meanwhile.
    let updates = conn.recording().updates_of("config_option_update");
    let ours =
        updates.filter(|it| (index..reply.index).contains(&it.index) && it.session == session);
    let Some((index, update)) = ours.last().map(|it| (it.index, it.body)) else {
        return Ok(());
    };
    let (known, reported) = (names(&answer), names(update));
    if !known.is_subset(&reported) {
        let reason = format!(
            "expected the options {} in the update, got {}",
            listed(&known),
            listed(&reported)
        );
        return Err(conn.at(index, reason));
    }
    Ok(())
}

/// In v2.
fn set_unknown(cx: &mut Cx) -> Outcome {
    refuses(cx, "configId", "acp-conformance-no-such-option")
}

/// In v2.
fn set_unlisted_value(cx: &mut Cx) -> Outcome {
    refuses(cx, "value", "acp-conformance-no-such-value")
}

/// Setting an option with this value of a member is refused, and no update says that the options have
/// changed. The agent may report them at any time, those of other sessions too.
fn refuses(cx: &mut Cx, member: &str, value: &str) -> Outcome {
    let conn = cx.ready()?;
    let (session, opened, mut params) = with_select(conn)?;
    params[member] = json!(value);
    let reply = conn.refusal(SET, params)?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)?;
    conn.settle()?;
    let mut known = &opened;
    let updates = conn.recording().updates_of("config_option_update");
    for update in updates.filter(|update| update.session == session) {
        let is_changed = difference(known, update.body, "").is_some();
        if update.index > reply.index && is_changed {
            return Err(conn.at(
                update.index,
                "expected the options as they were after a refused change, got others",
            ));
        }
        known = update.body;
    }
    Ok(())
}

/// An option that an update lacks can be set, and is listed then. That an update has fewer options than
/// there were says nothing: an option may depend on another.
pub(super) fn updates_all(view: &View<'_>) -> RuleResult {
    let Some((result, asked)) = view.result(Party::Client, SET).zip(view.asked) else {
        return Ok(0);
    };
    let session = asked.session.as_deref().and_then(|name| view.known(name));
    let Some(updated) = session.and_then(|session| session.updated_options.as_ref()) else {
        return Ok(0);
    };
    let id = text(&asked.params, "/configId").unwrap_or_default();
    if names(result).contains(id) && !updated.contains(id) {
        let updated = updated.iter().map(String::as_str).collect();
        return violation(format!(
            "expected {id}, which can be set, in the config_option_update before, got {}",
            listed(&updated)
        ));
    }
    Ok(1)
}

/// The option of the category `mode`.
fn mode_option(state: &Value) -> Option<&Value> {
    let mut options = items(state, "/configOptions");
    options.find(|option| text(option, "/category") == Some("mode"))
}

fn modes_too(view: &View<'_>) -> RuleResult {
    let Some((_, state)) = view.setup() else {
        return Ok(0);
    };
    let modes = text(state, "/modes/currentModeId").is_some();
    let option = mode_option(state).is_some();
    match (modes, option) {
        (true, false) => {
            violation("expected an option of the category `mode` beside `modes`, got none")
        }
        (false, true) => {
            violation("expected `modes` beside the option of the category `mode`, got none")
        }
        (both, _) => Ok(usize::from(both)),
    }
}

/// The mode and the option of the category `mode` agree whenever a session is opened.
pub(super) fn modes_agree(view: &View<'_>) -> RuleResult {
    let Some((_, state)) = view.setup() else {
        return Ok(0);
    };
    let (Some(mode), Some(option)) = (text(state, "/modes/currentModeId"), mode_option(state))
    else {
        return Ok(0);
    };
    let value = option.get("currentValue");
    if value.and_then(Value::as_str) != Some(mode) {
        return violation(format!(
            "expected the mode {mode} as the value of its option, got {}",
            named(value)
        ));
    }
    Ok(1)
}

/// What is set as a mode is the value of the option, and the other way round.
fn modes_in_sync(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, state) = conn.new_session()?;
    let (Some(current), Some(option)) = (text(&state, "/modes/currentModeId"), mode_option(&state))
    else {
        return skip("no session has modes and an option of the category `mode`");
    };
    let id = id_of(option).unwrap_or_default();
    let modes = modes::selectable(conn, &state);
    let mut others = modes.iter().filter(|mode| *mode != current);
    let Some(other) = others.find(|mode| offered(option).any(|value| value == **mode)) else {
        // The states of the session agree, which is checked of all of them.
        return Ok(());
    };
    let mark = conn.mark();
    modes::select(conn, &session, other)?;
    if let Some((index, value)) = value_after(conn, &session, &state, id, mark)?
        && value != json!(other)
    {
        let reason =
            format!("expected the value {other:?} of {id} after session/set_mode, got {value}");
        return Err(conn.at(index, reason));
    }
    let mark = conn.mark();
    let params = set_to(conn.version(), &session, id, current);
    if conn.call(SET, params)?.answer.is_err() {
        return Ok(());
    }
    conn.settle()?;
    match last_update(conn, &session, "current_mode_update", mark) {
        Some((index, update)) if modes::updated(update) != Some(current) => {
            let mode = modes::updated(update).unwrap_or("none");
            let reason = format!("expected the mode {current:?} after {id} was set, got {mode}");
            Err(conn.at(index, reason))
        }
        _ => Ok(()),
    }
}

/// The value of an option as the agent tells it now: in the answer to a set of another option that
/// changes nothing, or in an update since `mark`. None if it does not tell.
fn value_after(
    conn: &mut Conn,
    session: &str,
    state: &Value,
    id: &str,
    mark: usize,
) -> Outcome<Option<(usize, Value)>> {
    conn.settle()?;
    let another = items(state, "/configOptions").find_map(|option| {
        let other = id_of(option).filter(|other| *other != id)?;
        Some((other, text(option, "/currentValue")?))
    });
    if let Some((other, value)) = another {
        let reply = conn.call(SET, set_to(conn.version(), session, other, value))?;
        if let Ok(answer) = &reply.answer {
            let value = value_of(answer, id).cloned();
            return Ok(value.map(|value| (reply.index, value)));
        }
    }
    let reported = last_update(conn, session, "config_option_update", mark);
    Ok(reported.and_then(|(index, update)| Some((index, value_of(update, id)?.clone()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(options: &[(&str, &str)]) -> Value {
        let option = |(id, value): &(&str, &str)| json!({"id": id, "currentValue": value});
        json!({"configOptions": options.iter().map(option).collect::<Vec<_>>()})
    }

    #[test]
    fn a_list_has_the_same_options_and_the_same_values_but_of_the_one_that_was_set() {
        let known = list(&[("a", "1"), ("b", "1")]);
        let found = |reported: &[(&str, &str)]| difference(&known, &list(reported), "a");
        assert_eq!(found(&[("a", "2"), ("b", "1"), ("c", "1")]), None);
        let lost = "expected the options [a, b] in the answer, got [a]";
        assert_eq!(found(&[("a", "1")]).as_deref(), Some(lost));
        let changed = "expected the value \"1\" of b, which was not set, got \"2\"";
        assert_eq!(found(&[("a", "1"), ("b", "2")]).as_deref(), Some(changed));
    }
}
