//! Options of a session.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::steps::open;
use crate::harness::{Conn, Outcome, inconclusive};
use crate::requirements::watch::{items, text, unique, watch};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::Party;

use Check::Run;

const NONE: &str = "the agent told of no option";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("config-options.default-value", watch(default_value, NONE)),
    ("config-options.unique-ids", watch(unique_ids, NONE)),
    ("config-options.set", Run(set)),
    ("config-options.complete", Run(complete)),
];

/// What the agent tells of the options of a session, if this message does.
fn told<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let setup = view.setup().map(|(_, state)| state);
    let update = || Some(view.update_of("config_option_update")?.body);
    let set = || view.result(Party::Client, "session/set_config_option");
    let state = setup.or_else(update).or_else(set);
    state
        .into_iter()
        .flat_map(|state| items(state, "/configOptions"))
}

/// The values that an option offers, grouped or not.
fn offered(option: &Value) -> impl Iterator<Item = &str> {
    items(option, "/options").flat_map(|entry| {
        let own = text(entry, "/value");
        let grouped = items(entry, "/options").filter_map(|entry| text(entry, "/value"));
        own.into_iter().chain(grouped)
    })
}

fn default_value(view: &View<'_>) -> Seen {
    let mut seen = 0;
    for option in told(view) {
        seen += 1;
        let good = match (text(option, "/type"), option.get("currentValue")) {
            (Some("select"), Some(Value::String(value))) => {
                offered(option).any(|offered| offered == value)
            }
            (Some("boolean"), value) => value.is_some_and(Value::is_boolean),
            (Some("select"), _) | (None, _) => false,
            (Some(_), _) => true,
        };
        if !good {
            let id = text(option, "/configId").unwrap_or_default();
            return fault(format!("the value of {id} is none of those it offers"));
        }
    }
    Ok(seen)
}

fn unique_ids(view: &View<'_>) -> Seen {
    unique(
        "options",
        told(view).filter_map(|option| text(option, "/configId")),
    )
}

/// A session, and what its agent tells of its options.
fn with_options(cx: &mut Cx) -> Outcome<(&mut Conn, String, Value)> {
    let conn = open(cx)?;
    let (session, state) = conn.new_session()?;
    if items(&state, "/configOptions").next().is_none() {
        return inconclusive(NONE);
    }
    Ok((conn, session, state))
}

/// Sets an option of a choice to another value than it has. Yields its id and that value,
/// and the place of the answer and the answer.
fn changed(
    conn: &mut Conn,
    session: &str,
    state: &Value,
) -> Outcome<(String, String, usize, Value)> {
    let found = items(state, "/configOptions").find_map(|option| {
        let now = text(option, "/currentValue")?;
        let other = offered(option).find(|value| *value != now)?;
        Some((text(option, "/configId")?.to_owned(), other.to_owned()))
    });
    let Some((id, value)) = found else {
        return inconclusive("no option has a second value to choose");
    };
    let params = json!({"sessionId": session, "configId": id, "type": "id", "value": value});
    let reply = conn.call("session/set_config_option", params)?;
    match reply.answer {
        Ok(result) => Ok((id, value, reply.index, result)),
        Err(_) => Err(conn.at(reply.index, "a value that is offered was refused")),
    }
}

fn set(cx: &mut Cx) -> Outcome {
    let (conn, session, state) = with_options(cx)?;
    let (id, value, index, result) = changed(conn, &session, &state)?;
    let mut options = items(&result, "/configOptions");
    let option = options.find(|option| text(option, "/configId") == Some(&id));
    match option.and_then(|option| text(option, "/currentValue")) {
        Some(now) if now == value => Ok(()),
        _ => Err(conn.at(
            index,
            format!("the answer does not say that {id} is {value}"),
        )),
    }
}

fn complete(cx: &mut Cx) -> Outcome {
    let (conn, session, state) = with_options(cx)?;
    let (set, _, index, result) = changed(conn, &session, &state)?;
    let ids = |state: &Value| -> BTreeSet<String> {
        let ids = items(state, "/configOptions").filter_map(|option| text(option, "/configId"));
        ids.map(str::to_owned).collect()
    };
    // Another value may do away with options, but not with the one that was set.
    let answered = ids(&result);
    if !answered.contains(&set) || (answered.len() == 1 && ids(&state).len() > 1) {
        return Err(conn.at(index, "the answer leaves options out"));
    }
    Ok(())
}
