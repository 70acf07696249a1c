//! Work in the background as states list it.

use serde_json::Value;

use crate::passive::{RuleResult, Session, Update, View, violation};
use crate::requirements::NamedCheck;
use crate::requirements::passive::{items, text, watch};

const NO_LIST: &str = "no state listed background work; the prompt `tool` may cause it";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    (
        "prompt-lifecycle.background-announced",
        watch(announced, NO_LIST),
    ),
    ("prompt-lifecycle.background-ended", watch(ended, NO_LIST)),
    (
        "prompt-lifecycle.background-always",
        watch(always, "no state had `background`"),
    ),
];

/// A report of the state of a session, and what is known of this session.
fn state<'a>(view: &View<'a>) -> Option<(Update<'a>, &'a Session)> {
    let update = view.update_of("state_update")?;
    Some((update, view.known(update.session)?))
}

/// The same if all of the session was seen.
fn whole<'a>(view: &View<'a>) -> Option<(Update<'a>, &'a Session)> {
    state(view).filter(|(_, session)| !session.continued && view.state.is_whole())
}

/// What a piece of work is called in a report.
fn name(work: &Value) -> &str {
    let id = text(work, "/terminalId").or_else(|| text(work, "/toolCallId"));
    id.unwrap_or("work without an id")
}

fn announced(view: &View<'_>) -> RuleResult {
    let Some((update, session)) = whole(view) else {
        return Ok(0);
    };
    let mut seen = 0;
    for work in items(update.body, "/background") {
        match session.progress(work) {
            Some((false, _)) => {
                return violation(format!(
                    "expected an update about {} before a state lists it, got none",
                    name(work)
                ));
            }
            Some(_) => seen += 1,
            None => {}
        }
    }
    Ok(seen)
}

fn ended(view: &View<'_>) -> RuleResult {
    let Some((update, session)) = whole(view) else {
        return Ok(0);
    };
    // Without a list nothing is removed from it.
    let Some(listed) = update.body.get("background").and_then(Value::as_array) else {
        return Ok(0);
    };
    let mut seen = 0;
    let removed = |work: &&Value| !listed.iter().any(|other| name(other) == name(work));
    for work in session.background.iter().flatten().filter(removed) {
        match session.progress(work) {
            Some((_, false)) => {
                return violation(format!(
                    "expected the end of {} before a state without it, got none",
                    name(work)
                ));
            }
            Some(_) => seen += 1,
            None => {}
        }
    }
    Ok(seen)
}

fn always(view: &View<'_>) -> RuleResult {
    let Some((update, _)) = state(view).filter(|(_, it)| it.background.is_some()) else {
        return Ok(0);
    };
    match update.body.get("background") {
        Some(Value::Array(_)) => Ok(1),
        _ => violation("expected `background` as in the state before, got none"),
    }
}
