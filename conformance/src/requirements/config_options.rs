//! Session config options.

use serde_json::{Value, json};

use super::option_lists::last_update;
use super::passive::{items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{
    Caps, Conn, Cx, Outcome, chooses_model, inconclusive, is_privileged, option_set_to, skip,
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
    ("config-options.kept", Run(kept)),
    ("config-options.values", watch(values, NONE)),
];

const CATEGORIES: [&str; 4] = ["mode", "model", "model_config", "thought_level"];

/// The values that a select option offers, grouped or not.
pub(super) fn offered(option: &Value) -> impl Iterator<Item = &str> {
    items(option, "/options").flat_map(|entry| {
        let own = text(entry, "/value");
        let grouped = items(entry, "/options").filter_map(|entry| text(entry, "/value"));
        own.into_iter().chain(grouped)
    })
}

/// A value in words.
pub(super) fn named(value: Option<&Value>) -> String {
    value.map_or_else(|| "none".to_owned(), Value::to_string)
}

/// The id of an option in any version.
pub(super) fn id_of(option: &Value) -> Option<&str> {
    text(option, "/configId").or_else(|| text(option, "/id"))
}

/// What the agent tells of the options of a session, if this message does.
fn reported<'a>(view: &View<'a>) -> Option<&'a Value> {
    let setup = view.setup().map(|(_, state)| state);
    let update = || Some(view.update_of("config_option_update")?.body);
    let set = || view.result(Party::Client, SET);
    setup.or_else(update).or_else(set)
}

/// The options that this message tells.
fn options<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let state = reported(view).into_iter();
    state.flat_map(|state| items(state, "/configOptions"))
}

/// Whether an option is of a type of the protocol; what one of another type has is its own.
fn is_known(option: &&Value) -> bool {
    text(option, "/type").is_none_or(|kind| matches!(kind, "select" | "boolean"))
}

fn default_value(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for option in options(view).filter(is_known) {
        seen += 1;
        let id = id_of(option).unwrap_or_default();
        let good = match option.get("currentValue") {
            Some(Value::String(value)) => offered(option).any(|offered| offered == value),
            Some(Value::Bool(_)) => text(option, "/type") == Some("boolean"),
            _ => text(option, "/type").is_none(),
        };
        if !good {
            let value = named(option.get("currentValue"));
            return violation(format!(
                "expected a value of {id} that it offers, got {value}"
            ));
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
        let found = Violation::new(format!(
            "expected a category of the protocol, got {category}"
        ));
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
            "expected no boolean option for a client that does not declare them, got one",
        ));
    }
    if let Some((id, value)) = select(&state, conn.env.conditions.allow_privileged) {
        let params = set_to(conn.version(), &session, &id, &value);
        // A refusal has no options, and other rows judge it.
        conn.call(SET, params)?;
        conn.settle()?;
    }
    let found = conn.recording().entries.iter().position(|entry| {
        let reported = ["/result", "/params/update"];
        let mut reported = reported
            .iter()
            .filter_map(|place| entry.value.pointer(place));
        reported.any(|state| items(state, "/configOptions").any(is_boolean))
    });
    match found {
        Some(index) => Err(conn.at(
            index,
            "expected no boolean option for a client that does not declare them, got one",
        )),
        None => Ok(()),
    }
}

/// A select option with a value that is not its current one, if it offers another that may be
/// selected. Models are set to what they are, unless `all` options are allowed.
fn select(state: &Value, all: bool) -> Option<(String, String)> {
    let known = || items(state, "/configOptions").filter(is_known);
    let another = known().find_map(|option| {
        let current = text(option, "/currentValue")?;
        let may_select = |value: &&str| {
            let is_free = !chooses_model(option) && !bypasses(option, value);
            *value != current && (all || is_free)
        };
        let value = offered(option).find(may_select)?;
        Some((id_of(option)?.to_owned(), value.to_owned()))
    });
    another.or_else(|| {
        known().find_map(|option| {
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

/// The method that sets an option.
pub(super) const SET: &str = "session/set_config_option";

/// The params that set a select option of a session.
pub(super) fn set_to(version: Version, session: &str, id: &str, value: &str) -> Value {
    let mut params = option_set_to(version, id, value);
    params["sessionId"] = json!(session);
    params
}

fn with_options(conn: &mut Conn) -> Outcome<(String, Value)> {
    let (session, state) = conn.new_session()?;
    if items(&state, "/configOptions").next().is_none() {
        return skip("the agent has no config options");
    }
    Ok((session, state))
}

pub(super) fn with_select(conn: &mut Conn) -> Outcome<(String, Value, Value)> {
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
pub(super) fn value_of<'a>(state: &'a Value, id: &str) -> Option<&'a Value> {
    let mut options = items(state, "/configOptions");
    options
        .find(|option| id_of(option) == Some(id))?
        .get("currentValue")
}

fn must_be_set(conn: &mut Conn, params: Value) -> Outcome {
    let id = text(&params, "/configId").unwrap_or_default().to_owned();
    let wanted = params.get("value").cloned();
    let state = conn.result(SET, params)?;
    let value = value_of(&state, &id);
    if value == wanted.as_ref() {
        return Ok(());
    }
    let reason = format!(
        "expected the value {} of {id}, which was set, got {}",
        named(wanted.as_ref()),
        named(value)
    );
    Err(conn.at(conn.mark() - 1, reason))
}

/// Sets an option. Yields the options that the answer lists.
///
/// # Errors
/// Inconclusive when the agent refuses the value, which other rows judge.
pub(super) fn set(conn: &mut Conn, params: Value) -> Outcome<Value> {
    let refused = |_| inconclusive("the agent refuses a value that the option has");
    conn.call(SET, params)?.answer.or_else(refused)
}

fn set_select(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (_, _, params) = with_select(conn)?;
    must_be_set(conn, params)
}

fn is_on(option: &Value) -> bool {
    option.get("currentValue") == Some(&json!(true))
}

/// A boolean option that may be set: one that bypasses permissions is not switched on, unless `all` options
/// are allowed.
fn boolean(state: &Value, all: bool) -> Option<&Value> {
    let options = items(state, "/configOptions");
    let mut booleans = options.filter(|option| text(option, "/type") == Some("boolean"));
    booleans.find(|option| all || is_on(option) || !is_privileged(option))
}

fn set_boolean(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, state) = with_options(conn)?;
    let Some(option) = boolean(&state, conn.env.conditions.allow_privileged) else {
        return skip("the agent has no boolean option that may be set");
    };
    let value = !is_on(option);
    let params = json!({
        "sessionId": session, "configId": id_of(option), "type": "boolean", "value": value,
    });
    must_be_set(conn, params)
}

fn values(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    let lists = options(view).filter(is_known);
    for option in lists.filter(|option| option.get("options").is_some()) {
        seen += 1;
        let id = id_of(option).unwrap_or_default();
        let mut groups = items(option, "/options").filter(|entry| entry.get("options").is_some());
        if offered(option).next().is_none()
            || groups.any(|group| items(group, "/options").next().is_none())
        {
            return violation(format!("expected a value in each list of {id}, got none"));
        }
        unique("values", offered(option))?;
    }
    Ok(seen)
}

fn kept(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let (session, _, params) = with_select(conn)?;
    let id = text(&params, "/configId").unwrap_or_default().to_owned();
    let mut wanted = params.get("value").cloned();
    set(conn, params)?;
    let mark = conn.mark();
    // Nothing obliges an agent to keep a session in which nothing was said.
    conn.prompt(&session, "hello")?;
    // It may choose another value meanwhile, and reports it.
    if let Some((_, update)) = last_update(conn, &session, "config_option_update", mark) {
        wanted = value_of(update, &id).cloned().or(wanted);
    }
    for (method, index, state) in conn.reopened(&session)? {
        match value_of(&state, &id) {
            None => {
                let reason = format!("the answer to {method} does not tell {id}");
                return skip(reason);
            }
            value if value == wanted.as_ref() => {}
            value => {
                let reason = format!(
                    "expected the value {} of {id} after {method}, got {}",
                    named(wanted.as_ref()),
                    named(value)
                );
                return Err(conn.at(index, reason));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_bypasses_permissions_is_not_switched_on() {
        let option = |id: &str, is_on: bool| json!({"configId": id, "type": "boolean", "currentValue": is_on});
        let id = |state: &Value, all: bool| boolean(state, all).and_then(id_of).map(str::to_owned);
        let state = json!({"configOptions": [option("yolo", false), option("brave", false)]});
        assert_eq!(id(&state, false).as_deref(), Some("brave"));
        assert_eq!(id(&state, true).as_deref(), Some("yolo"));
        let state = json!({"configOptions": [option("yolo", true)]});
        assert_eq!(id(&state, false).as_deref(), Some("yolo"));
        let state = json!({"configOptions": [option("yolo", false)]});
        assert_eq!(id(&state, false), None);
    }
}
