//! Slash commands.

use serde_json::{Value, json};

use super::passive::{items, repeated, text, watch};
use super::{Check, NamedCheck};
use crate::harness::{Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};

use Check::Run;

const NONE: &str = "no available_commands_update; the prompt `commands` may cause one";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("commands.names", watch(names, NONE)),
    ("commands.descriptions", watch(descriptions, NONE)),
    ("commands.unique", watch(unique, NONE)),
    ("commands.run", Run(run)),
];

/// The commands that an update advertises.
fn advertised<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let update = view.update_of("available_commands_update");
    let all = update.into_iter();
    all.flat_map(|update| items(update.body, "/availableCommands"))
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
        None => Ok(usize::from(
            view.update_of("available_commands_update").is_some(),
        )),
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
    let reported = conn.wait(
        0,
        "an available_commands_update",
        limit,
        |recording, index| {
            let update = recording.entries.get(index)?.params().get("update")?;
            (text(update, "/sessionUpdate") == Some("available_commands_update")).then_some(())
        },
    );
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
