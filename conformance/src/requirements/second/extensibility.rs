//! What is not the protocol's, and the names that are reserved for either.

use serde_json::{Value, json};

use super::steps::{open, ready};
use crate::harness::Outcome;
use crate::requirements::watch::{free_of, items, text, watch};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::{Level, Party, Rule};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("extensibility.request-answered", Run(request_answered)),
    ("extensibility.request-not-found", Run(request_not_found)),
    (
        "extensibility.notification-ignored",
        Run(notification_ignored),
    ),
    (
        "extensibility.no-custom-fields",
        free_of(
            &[Rule::CustomField],
            Level::Warning,
            "no message of the agent",
        ),
    ),
    (
        "extensibility.reserved-values",
        watch(reserved_values, "no value of this kind was seen"),
    ),
];

fn request_answered(cx: &mut Cx) -> Outcome {
    let (conn, _) = ready(cx)?;
    conn.call("_acp-conformance/none", json!({})).map(drop)
}

fn request_not_found(cx: &mut Cx) -> Outcome {
    let conn = open(cx)?;
    let reply = conn.refusal("_acp-conformance/unknown", json!({}))?;
    conn.has_code(&reply, -32601)
}

fn notification_ignored(cx: &mut Cx) -> Outcome {
    let conn = open(cx)?;
    let mark = conn.notify("_acp-conformance/news", json!({}));
    conn.settle()?;
    conn.nothing_answered_since(mark)
}

const KINDS: [&str; 10] = [
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

const STATUSES: [&str; 6] = [
    "pending",
    "in_progress",
    "paused",
    "completed",
    "failed",
    "cancelled",
];

const REASONS: [&str; 6] = [
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
    "error",
];

const OPTIONS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

const PRIORITIES: [&str; 3] = ["high", "medium", "low"];

/// A value is one of the protocol's, or begins with `_`.
fn own_or_known(value: Option<&Value>, known: &[&str]) -> Seen {
    match value.and_then(Value::as_str) {
        None => Ok(0),
        Some(value) if value.starts_with('_') || known.contains(&value) => Ok(1),
        Some(value) => fault(format!("{value:?} is reserved for versions to come")),
    }
}

fn reserved_values(view: &View<'_>) -> Seen {
    let mut seen = 0;
    if view.calls(Party::Agent, "session/request_permission") {
        for option in items(view.params(), "/options") {
            seen += own_or_known(option.get("kind"), &OPTIONS)?;
        }
    }
    let Some(update) = view.update() else {
        return Ok(seen);
    };
    match update.kind {
        "tool_call_update" => {
            seen += own_or_known(update.body.get("kind"), &KINDS)?;
            seen += own_or_known(update.body.get("status"), &STATUSES)?;
        }
        "state_update" if text(update.body, "/state") == Some("idle") => {
            seen += own_or_known(update.body.get("stopReason"), &REASONS)?;
        }
        "plan_update" => {
            for entry in items(update.body, "/plan/entries") {
                seen += own_or_known(entry.get("priority"), &PRIORITIES)?;
                seen += own_or_known(entry.get("status"), &STATUSES)?;
            }
        }
        _ => {}
    }
    Ok(seen)
}
