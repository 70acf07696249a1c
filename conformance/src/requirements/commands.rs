//! Slash commands.

use serde_json::{Value, json};

use super::passive::{items, repeated, text, watch};
use super::{Check, NamedCheck};
use crate::harness::{Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::wire::Version;

use Check::Run;

const NONE: &str = "no list of commands; the prompt `commands` may cause one";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("commands.names", watch(names, NONE)),
    ("commands.descriptions", watch(descriptions, NONE)),
    ("commands.unique", watch(unique, NONE)),
    ("commands.run", Run(run)),
];

/// What has a list of commands: an update, and in v2 the result that opens a session.
fn list<'a>(view: &View<'a>) -> Option<&'a Value> {
    let update = view.update_of("available_commands_update");
    let opened = || view.setup().filter(|_| view.state.version == Version::V2);
    let list = update.map(|update| update.body);
    let list = list.or_else(|| opened().map(|(_, state)| state));
    list.filter(|list| list.get("availableCommands").is_some())
}

/// The commands of such a list.
fn advertised<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let list = list(view).into_iter();
    list.flat_map(|list| items(list, "/availableCommands"))
}

pub(super) fn names(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for command in advertised(view) {
        seen += 1;
        let name = text(command, "/name").unwrap_or_default();
        if name.trim().is_empty() || name.starts_with('/') {
            return violation(format!(
                "expected a command name without a slash, got {name:?}"
            ));
        }
        if view.state.version == Version::V2 && name.contains(char::is_whitespace) {
            return violation(format!(
                "expected a command name without white space, got {name:?}"
            ));
        }
    }
    Ok(seen)
}

pub(super) fn descriptions(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for command in advertised(view) {
        seen += 1;
        if text(command, "/description").is_none() {
            return violation("expected a description of the command, got none");
        }
    }
    Ok(seen)
}

pub(super) fn unique(view: &View<'_>) -> RuleResult {
    match repeated(advertised(view).filter_map(|command| text(command, "/name"))) {
        Some(name) => violation(format!("expected one command {name}, got two")),
        None => Ok(usize::from(list(view).is_some())),
    }
}

fn run(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    if conn.env.profile.prompts.contains_key("commands") {
        conn.prompt(&session, "commands")?;
    }
    // An agent may look for its commands after the session is open.
    let limit = conn.env.timeout;
    let reported = conn.wait(0, "a list of commands", limit, |recording, index| {
        let said = &recording.entries.get(index)?.value;
        let update = said.pointer("/params/update");
        let update =
            update.filter(|it| text(it, "/sessionUpdate") == Some("available_commands_update"));
        // Version 2 has them in the result that opens a session, too.
        let list = update.or_else(|| said.get("result"))?;
        items(list, "/availableCommands").next().map(drop)
    });
    if reported.is_err() && !conn.has_ended() {
        return skip(NONE);
    }
    reported?;
    // The name of no command: an agent that takes any slash for one of its own
    // commands must still end the turn.
    let request = conn.begin_with(
        &session,
        json!([{"type": "text", "text": "/acp-conformance"}]),
    )?;
    conn.turn_reply(request)?;
    conn.prompt(&session, "hello").map(drop)
}
