//! Session config options.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::passive::{items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{
    Capability, Caps, Conn, Cx, Outcome, chooses_model, inconclusive, is_privileged, skip,
};
use crate::passive::{RuleResult, View, Violation, violation};
use crate::wire::{Party, Version, extensions};

use Check::Run;

const NONE: &str = "no session has config options";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("config-options.default", watch(default_value, NONE)),
    ("config-options.unique-id", watch(unique_id, NONE)),
    ("config-options.category", watch(category, NONE)),
    (
        "config-options.no-undeclared-boolean",
        Run(no_undeclared_boolean),
    ),
    ("config-options.set-select", Run(set_select)),
    ("config-options.set-boolean", Run(set_boolean)),
    ("config-options.complete", Run(complete)),
    (
        "config-options.complete-update",
        watch(complete_update, "no config_option_update"),
    ),
    ("config-options.set-unknown", Run(set_unknown)),
    ("config-options.set-unlisted-value", Run(set_unlisted)),
    ("config-options.set-during-a-turn", Run(set_during_a_turn)),
    (
        "config-options.modes-too",
        watch(
            modes_too,
            "no session has modes or an option of the category `mode`",
        ),
    ),
    (
        "config-options.modes-in-sync",
        watch(
            modes_in_sync,
            "no session has modes and an option of the category `mode`",
        ),
    ),
    ("config-options.kept", Run(kept)),
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

/// The id of an option in any version.
fn id_of(option: &Value) -> Option<&str> {
    text(option, "/configId").or_else(|| text(option, "/id"))
}

/// What the agent tells of the options of a session, if this message does.
fn told<'a>(view: &View<'a>) -> Option<&'a Value> {
    let setup = view.setup().map(|(_, state)| state);
    let update = || Some(view.update_of("config_option_update")?.body);
    let set = || view.result(Party::Client, "session/set_config_option");
    setup.or_else(update).or_else(set)
}

/// The options that this message tells.
fn options<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let state = told(view).into_iter();
    state.flat_map(|state| items(state, "/configOptions"))
}

fn default_value(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for option in options(view) {
        seen += 1;
        let id = id_of(option).unwrap_or_default();
        let good = match option.get("currentValue") {
            Some(Value::String(value)) => offered(option).any(|offered| offered == value),
            Some(Value::Bool(_)) => text(option, "/type") == Some("boolean"),
            _ => text(option, "/type").is_none_or(|kind| kind.starts_with('_')),
        };
        if !good {
            return violation(format!("the value of {id} is none of those it offers"));
        }
    }
    Ok(seen)
}

fn unique_id(view: &View<'_>) -> RuleResult {
    let ids = options(view).filter_map(|option| id_of(option));
    unique("options", ids)
}

fn category(view: &View<'_>) -> RuleResult {
    categories(options(view))
}

/// The categories of options are the protocol's, or begin with `_`.
pub(super) fn categories<'a>(options: impl Iterator<Item = &'a Value>) -> RuleResult {
    let mut seen = 0;
    let mut known = None;
    for option in options {
        seen += 1;
        let Some(category) = text(option, "/category") else {
            continue;
        };
        if category.starts_with('_') || CATEGORIES.contains(&category) {
            continue;
        }
        let found = Violation::new(format!("the category {category} is not the protocol's"));
        match extensions::category(category) {
            None => return Err(found),
            extension => known = Some(found.unless(extension)),
        }
    }
    known.map_or(Ok(seen), Err)
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
    if let Some((id, value)) = select(&state, conn.env.conditions.allow_privileged) {
        let params = set_to(conn.version(), &session, &id, &value);
        conn.result("session/set_config_option", params)?;
        conn.settle()?;
    }
    let found = conn.recording().entries.iter().position(|entry| {
        let told = ["/result", "/params/update"];
        let mut told = told.iter().filter_map(|place| entry.value.pointer(place));
        told.any(|state| items(state, "/configOptions").any(is_boolean))
    });
    match found {
        Some(index) => Err(conn.at(index, "a boolean option, which the client does not declare")),
        None => Ok(()),
    }
}

/// A select option with a value that is not its current one, if it offers another that may be
/// selected. Models are set to what they are, unless `all` options are allowed.
fn select(state: &Value, all: bool) -> Option<(String, String)> {
    let another = items(state, "/configOptions").find_map(|option| {
        let current = text(option, "/currentValue")?;
        let may_select = |value: &&str| {
            let is_free = !chooses_model(option) && !bypasses(option, value);
            *value != current && (all || is_free)
        };
        let value = offered(option).find(may_select)?;
        Some((id_of(option)?.to_owned(), value.to_owned()))
    });
    another.or_else(|| {
        items(state, "/configOptions").find_map(|option| {
            let current = text(option, "/currentValue")?;
            Some((id_of(option)?.to_owned(), current.to_owned()))
        })
    })
}

/// Whether a value of an option bypasses permissions.
fn bypasses(option: &Value, value: &str) -> bool {
    let entries = items(option, "/options");
    let mut entries =
        entries.flat_map(|entry| std::iter::once(entry).chain(items(entry, "/options")));
    entries.any(|entry| text(entry, "/value") == Some(value) && is_privileged(entry))
}

/// The params that set a select option. In v2 the type says that the value is an id.
fn set_to(version: Version, session: &str, id: &str, value: &str) -> Value {
    let mut params = json!({"sessionId": session, "configId": id, "value": value});
    if version == Version::V2 {
        params["type"] = json!("id");
    }
    params
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
    match select(&state, conn.env.conditions.allow_privileged) {
        Some((id, value)) => {
            let params = set_to(conn.version(), &session, &id, &value);
            Ok((session, state, params))
        }
        None => skip("the agent has no select option"),
    }
}

/// The current value of an option in what the agent reported.
fn value_of<'a>(state: &'a Value, id: &str) -> Option<&'a Value> {
    let mut options = items(state, "/configOptions");
    options
        .find(|option| id_of(option) == Some(id))?
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
        "sessionId": session, "configId": id_of(option), "type": "boolean", "value": value,
    });
    must_be_set(conn, params)
}

fn names(state: &Value) -> BTreeSet<&str> {
    items(state, "/configOptions")
        .filter_map(|option| id_of(option))
        .collect()
}

fn complete(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, before, params) = with_select(conn)?;
    let after = conn.result("session/set_config_option", params.clone())?;
    let index = conn.mark() - 1;
    // One option may change which others there are, but not all of them at
    // once, and not the one that was set.
    let id = text(&params, "/configId").unwrap_or_default();
    if !names(&after).contains(id) || (names(&before).len() > 1 && names(&after).len() == 1) {
        return Err(conn.at(index, "the answer does not list all options"));
    }
    Ok(())
}

fn complete_update(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("config_option_update") else {
        return Ok(0);
    };
    let known = view.known(update.session);
    let Some(first) = known.and_then(|session| session.options.as_ref()) else {
        return Ok(0);
    };
    if first.len() > 1 && names(update.body).len() <= 1 {
        return violation("the update does not list all options");
    }
    Ok(1)
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

fn modes_too(view: &View<'_>) -> RuleResult {
    let Some((_, state)) = view.setup() else {
        return Ok(0);
    };
    let modes = text(state, "/modes/currentModeId").is_some();
    let option = mode_option(state).is_some();
    match (modes, option) {
        (true, false) => violation("no option of the category `mode`"),
        (false, true) => violation("no `modes`"),
        (both, _) => Ok(usize::from(both)),
    }
}

fn modes_in_sync(view: &View<'_>) -> RuleResult {
    let Some((_, state)) = view.setup() else {
        return Ok(0);
    };
    let (Some(mode), Some(option)) = (text(state, "/modes/currentModeId"), mode_option(state))
    else {
        return Ok(0);
    };
    if text(option, "/currentValue") != Some(mode) {
        return violation(format!("the mode is {mode}, the option says otherwise"));
    }
    Ok(1)
}

fn kept(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::Resume)?;
    let (session, _, params) = with_select(conn)?;
    let id = text(&params, "/configId").unwrap_or_default().to_owned();
    let wanted = params.get("value").cloned();
    conn.result("session/set_config_option", params)?;
    // Nothing obliges an agent to keep a session in which nothing was said.
    conn.prompt(&session, "hello")?;
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
