//! Plans.

use super::watch::{items, text, watch};
use super::{Check, Requirement, must, should};
use crate::watch::{Seen, View, fault};

use Check::Excluded;

const NONE: &str = "no plan; the prompt `plan` may cause one";

pub(super) const ROWS: &[Requirement] = &[
    should(
        "plan.reported",
        "agent-plan#creating-plans",
        "When the language model creates an execution plan, the Agent SHOULD report it to the Client",
        Excluded("only the agent knows whether its model made a plan"),
    ),
    must(
        "plan.entries",
        "agent-plan#plan-entries",
        "A human-readable description of what this task aims to accomplish",
        watch(entries, NONE),
    ),
    must(
        "plan.status",
        "agent-plan#updating-plans",
        "MUST send a complete list of all plan entries in each update and their current status",
        watch(status, NONE),
    ),
];

fn entries(view: &View<'_>) -> Seen {
    let Some(update) = view.update_of("plan") else {
        return Ok(0);
    };
    let mut entries = items(update.body, "/entries");
    if entries.any(|entry| text(entry, "/content").is_none_or(|text| text.trim().is_empty())) {
        return fault("an entry of the plan does not say what it is about");
    }
    Ok(1)
}

fn status(view: &View<'_>) -> Seen {
    let Some(update) = view.update_of("plan") else {
        return Ok(0);
    };
    let known = ["pending", "in_progress", "completed"];
    let mut entries = items(update.body, "/entries");
    if entries.any(|entry| text(entry, "/status").is_none_or(|status| !known.contains(&status))) {
        return fault("an entry of the plan has no status");
    }
    Ok(1)
}
