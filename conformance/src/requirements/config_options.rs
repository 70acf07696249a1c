//! Session config options.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::watch::{items, repeated, text, watch};
use super::{Check, Requirement, capability, info, must, should};
use crate::harness::{Caps, Conn, Outcome, Recording, Stop, inconclusive, skip};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

const NONE: &str = "no session has config options";

pub(super) const ROWS: &[Requirement] = &[
    capability(
        "config-options.default",
        "session-config-options#default-values-and-graceful-degradation",
        "Agents MUST always provide a default value for every configuration option.",
        watch(default_value, NONE),
    ),
    capability(
        "config-options.unique-id",
        "session-config-options#configoption",
        "Unique identifier for this configuration option.",
        watch(unique_id, NONE),
    ),
    capability(
        "config-options.category",
        "session-config-options#option-categories",
        "Category names that do not begin with `_` are reserved for the ACP spec.",
        watch(category, NONE),
    ),
    must(
        "config-options.no-undeclared-boolean",
        "session-config-options#boolean-config-options",
        "Agents MUST NOT include `type: \"boolean\"` options in `configOptions` payloads unless",
        Run(no_undeclared_boolean),
    ),
    capability(
        "config-options.set-select",
        "session-config-options#from-the-client",
        "For `select` options, this must be one of the values listed in the option's `options` array.",
        Run(set_select),
    ),
    capability(
        "config-options.set-boolean",
        "session-config-options#from-the-client",
        "For boolean options, Clients send `type: \"boolean\"` with a boolean `value`",
        Run(set_boolean),
    ),
    capability(
        "config-options.complete",
        "session-config-options#from-the-client",
        "MUST respond with the complete list of all configuration options and their current values",
        Run(complete),
    ),
    capability(
        "config-options.complete-update",
        "session-config-options#from-the-agent",
        "This notification also contains the complete configuration state.",
        watch(complete_update, "no config_option_update"),
    ),
    info(
        "config-options.set-unknown",
        "session-config-options#from-the-client",
        "The `id` of the configuration option to change",
        Run(set_unknown),
    ),
    info(
        "config-options.set-unlisted-value",
        "session-config-options#from-the-client",
        "this must be one of the values listed in the option's `options` array",
        Run(set_unlisted),
    ),
    capability(
        "config-options.set-during-a-turn",
        "session-config-options#setting-a-config-option",
        "can be changed at any point during a session, whether the Agent is idle or generating",
        Run(set_during_a_turn),
    ),
    should(
        "config-options.modes-too",
        "session-config-options#relationship-to-session-modes",
        "Agents that provide mode-like configuration SHOULD send both",
        watch(
            modes_too,
            "no session has modes or an option of the category `mode`",
        ),
    ),
    should(
        "config-options.modes-in-sync",
        "session-config-options#relationship-to-session-modes",
        "Agents SHOULD keep both in sync to ensure consistent behavior",
        watch(
            modes_in_sync,
            "no session has modes and an option of the category `mode`",
        ),
    ),
    info(
        "config-options.kept",
        "session-config-options#initial-state",
        "a list of configuration options and their current values",
        Run(kept),
    ),
];

const CATEGORIES: [&str; 4] = ["mode", "model", "model_config", "thought_level"];

/// The values that a select option offers, grouped or not.
fn offered(option: &Value) -> impl Iterator<Item = &str> {
    items(option, "/options").flat_map(|entry| {
        let own = text(entry, "/value");
        let grouped = items(entry, "/options").filter_map(|entry| text(entry, "/value"));
        own.into_iter().chain(grouped)
    })
}

/// Every place where the agent tells the options of a session.
fn told(recording: &Recording) -> Vec<(usize, &str, &Value)> {
    let setups = recording.setups();
    let setups = setups.filter(|(_, _, state)| state.get("configOptions").is_some());
    let updates = recording.updates_of("config_option_update");
    let updates = updates.map(|update| (update.index, update.session, update.body));
    let sets = recording.calls(Party::Client, "session/set_config_option");
    let sets = sets.filter_map(|(request, entry)| {
        let (index, answer) = recording.answer(request)?;
        Some((index, entry.session()?, answer.value.get("result")?))
    });
    setups.chain(updates).chain(sets).collect()
}

fn default_value(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, _, state) in told(recording) {
        for option in items(state, "/configOptions") {
            seen += 1;
            let id = text(option, "/id").unwrap_or_default();
            let good = match option.get("currentValue") {
                Some(Value::String(value)) => offered(option).any(|offered| offered == value),
                Some(Value::Bool(_)) => text(option, "/type") == Some("boolean"),
                _ => text(option, "/type").is_none_or(|kind| kind.starts_with('_')),
            };
            if !good {
                let reason = format!("the value of {id} is none of those it offers");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn unique_id(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, _, state) in told(recording) {
        let ids: Vec<_> = items(state, "/configOptions")
            .filter_map(|option| text(option, "/id"))
            .collect();
        seen += ids.len();
        if let Some(id) = repeated(ids) {
            return Err(Stop::at(
                recording,
                index,
                format!("two options have the id {id}"),
            ));
        }
    }
    Ok(seen)
}

fn category(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, _, state) in told(recording) {
        for option in items(state, "/configOptions") {
            seen += 1;
            let Some(category) = text(option, "/category") else {
                continue;
            };
            if !category.starts_with('_') && !CATEGORIES.contains(&category) {
                let reason = format!("the category {category} is not the protocol's");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn no_undeclared_boolean(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::None)?;
    let (session, state) = conn.new_session()?;
    let is_boolean = |option: &Value| text(option, "/type") == Some("boolean");
    if items(&state, "/configOptions").any(is_boolean) {
        return Err(conn.at(
            conn.mark() - 1,
            "a boolean option, which the client does not declare",
        ));
    }
    if let Some((id, value)) = select(&state) {
        let params = json!({"sessionId": session, "configId": id, "value": value});
        conn.result("session/set_config_option", params)?;
        conn.settle()?;
    }
    let told = told(conn.recording());
    let found = told
        .iter()
        .find(|(_, _, state)| items(state, "/configOptions").any(is_boolean));
    match found {
        Some((index, ..)) => Err(conn.at(
            *index,
            "a boolean option, which the client does not declare",
        )),
        None => Ok(()),
    }
}

/// A select option with a value that is not its current one, if it offers another.
fn select(state: &Value) -> Option<(String, String)> {
    items(state, "/configOptions").find_map(|option| {
        let current = text(option, "/currentValue")?;
        let other = offered(option).find(|value| *value != current);
        let value = other.or_else(|| offered(option).next())?;
        Some((text(option, "/id")?.to_owned(), value.to_owned()))
    })
}

fn with_options(conn: &mut Conn) -> Outcome<(String, Value)> {
    let (session, state) = conn.new_session()?;
    if items(&state, "/configOptions").next().is_none() {
        return skip("the agent has no config options");
    }
    Ok((session, state))
}

fn with_select(conn: &mut Conn) -> Outcome<(String, Value, Value)> {
    let (session, state) = with_options(conn)?;
    match select(&state) {
        Some((id, value)) => {
            let params = json!({"sessionId": session, "configId": id, "value": value});
            Ok((session, state, params))
        }
        None => skip("the agent has no select option"),
    }
}

/// The current value of an option in what the agent told.
fn value_of<'a>(state: &'a Value, id: &str) -> Option<&'a Value> {
    let mut options = items(state, "/configOptions");
    options
        .find(|option| text(option, "/id") == Some(id))?
        .get("currentValue")
}

fn must_be_set(conn: &mut Conn, params: Value) -> Outcome {
    let id = text(&params, "/configId").unwrap_or_default().to_owned();
    let wanted = params.get("value").cloned();
    let state = conn.result("session/set_config_option", params)?;
    if value_of(&state, &id) == wanted.as_ref() {
        return Ok(());
    }
    Err(conn.at(
        conn.mark() - 1,
        format!("{id} does not have the value that was set"),
    ))
}

fn set_select(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, _, params) = with_select(conn)?;
    must_be_set(conn, params)
}

fn set_boolean(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, state) = with_options(conn)?;
    let mut options = items(&state, "/configOptions");
    let Some(option) = options.find(|option| text(option, "/type") == Some("boolean")) else {
        return skip("the agent has no boolean option");
    };
    let value = option.get("currentValue") != Some(&json!(true));
    let params = json!({
        "sessionId": session, "configId": option.get("id"), "type": "boolean", "value": value,
    });
    must_be_set(conn, params)
}

fn names(state: &Value) -> BTreeSet<&str> {
    items(state, "/configOptions")
        .filter_map(|option| text(option, "/id"))
        .collect()
}

fn complete(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, before, params) = with_select(conn)?;
    let after = conn.result("session/set_config_option", params.clone())?;
    let index = conn.mark() - 1;
    // Setting one option may change which others there are, but not all of them at
    // once, and not the one that was set.
    let id = text(&params, "/configId").unwrap_or_default();
    if !names(&after).contains(id) || (names(&before).len() > 1 && names(&after).len() == 1) {
        return Err(conn.at(index, "the answer does not list all options"));
    }
    Ok(())
}

fn complete_update(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for update in recording.updates_of("config_option_update") {
        let mut before = recording
            .setups()
            .filter(|(index, session, _)| *index < update.index && *session == update.session);
        let Some((_, _, state)) = before.next() else {
            continue;
        };
        seen += 1;
        if names(state).len() > 1 && names(update.body).len() <= 1 {
            let reason = "the update does not list all options";
            return Err(Stop::at(recording, update.index, reason));
        }
    }
    Ok(seen)
}

fn set_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, _, mut params) = with_select(conn)?;
    params["configId"] = json!("acp-conformance-no-such-option");
    conn.refusal("session/set_config_option", params).map(drop)
}

fn set_unlisted(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, _, mut params) = with_select(conn)?;
    params["value"] = json!("acp-conformance-no-such-value");
    conn.refusal("session/set_config_option", params).map(drop)
}

fn set_during_a_turn(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, _, params) = with_select(conn)?;
    let running = conn.begin_slow(&session)?;
    let set = conn.call("session/set_config_option", params);
    conn.cancel(&session);
    conn.turn_reply(running)?;
    let set = set?;
    match set.answer {
        Ok(_) => Ok(()),
        Err(_) => Err(conn.at(set.index, "refused while the agent is generating")),
    }
}

/// The option of the category `mode`.
fn mode_option(state: &Value) -> Option<&Value> {
    let mut options = items(state, "/configOptions");
    options.find(|option| text(option, "/category") == Some("mode"))
}

fn modes_too(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, _, state) in recording.setups() {
        let modes = text(state, "/modes/currentModeId").is_some();
        let option = mode_option(state).is_some();
        seen += usize::from(modes || option);
        if modes != option {
            let missing = if modes {
                "no option of the category `mode`"
            } else {
                "no `modes`"
            };
            return Err(Stop::at(recording, index, missing));
        }
    }
    Ok(seen)
}

fn modes_in_sync(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, _, state) in recording.setups() {
        let (Some(mode), Some(option)) = (text(state, "/modes/currentModeId"), mode_option(state))
        else {
            continue;
        };
        seen += 1;
        if text(option, "/currentValue") != Some(mode) {
            let reason = format!("the mode is {mode}, the option says otherwise");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn kept(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs("/sessionCapabilities/resume")?;
    let (session, _, params) = with_select(conn)?;
    let id = text(&params, "/configId").unwrap_or_default().to_owned();
    let wanted = params.get("value").cloned();
    conn.result("session/set_config_option", params)?;
    let state = conn.resumed(&session)?;
    match value_of(&state, &id) {
        None => inconclusive(format!("the answer to session/resume does not tell {id}")),
        value if value == wanted.as_ref() => Ok(()),
        Some(_) => Err(conn.at(
            conn.mark() - 1,
            format!("the resumed session has another value of {id}"),
        )),
    }
}
