//! What is not the protocol's, and the names that are reserved for either.

use serde_json::Value;

use crate::passive::{RuleResult, View, violation};
use crate::requirements::NamedCheck;
use crate::requirements::passive::{items, text, watch};
use crate::wire::Party;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[(
    "extensibility.reserved-values",
    watch(reserved_values, "no value of this kind was seen"),
)];

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

/// The kinds of updates, those of the proposals too, also of those that no document has yet.
const UPDATES: [&str; 26] = [
    "agent_message",
    "agent_message_chunk",
    "agent_thought",
    "agent_thought_chunk",
    "available_commands_update",
    "compaction_summary_chunk",
    "compaction_update",
    "config_option_update",
    "cursor_update",
    "notice",
    "plan_removed",
    "plan_update",
    "prompt_suggestions_update",
    "replay_complete",
    "session_info_update",
    "session_message",
    "session_message_chunk",
    "state_update",
    "subagent_update",
    "terminal_output_chunk",
    "terminal_update",
    "tool_call_content_chunk",
    "tool_call_update",
    "usage_update",
    "user_message",
    "user_message_chunk",
];

/// A value is one of the protocol's, or begins with `_`.
fn own_or_known(value: Option<&Value>, known: &[&str]) -> RuleResult {
    match value.and_then(Value::as_str) {
        None => Ok(0),
        Some(value) if value.starts_with('_') || known.contains(&value) => Ok(1),
        Some(value) => violation(format!(
            "expected a value of the protocol or one that begins with `_`, got {value:?}"
        )),
    }
}

fn reserved_values(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    if view.calls(Party::Agent, "session/request_permission") {
        for option in items(view.params(), "/options") {
            seen += own_or_known(option.get("kind"), &OPTIONS)?;
        }
    }
    let Some(update) = view.update() else {
        return Ok(seen);
    };
    seen += own_or_known(update.body.get("sessionUpdate"), &UPDATES)?;
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
