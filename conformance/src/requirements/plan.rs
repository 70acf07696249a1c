//! Plans.

use super::watch::{items, text, watch};
use super::{Check, Requirement, must, should};
use crate::harness::{Outcome, Recording, Stop};

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

fn entries(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for update in recording.updates_of("plan") {
        seen += 1;
        let mut entries = items(update.body, "/entries");
        if entries.any(|entry| text(entry, "/content").is_none_or(|text| text.trim().is_empty())) {
            let reason = "an entry of the plan does not say what it is about";
            return Err(Stop::at(recording, update.index, reason));
        }
    }
    Ok(seen)
}

fn status(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for update in recording.updates_of("plan") {
        seen += 1;
        let known = ["pending", "in_progress", "completed"];
        let mut entries = items(update.body, "/entries");
        if entries.any(|entry| text(entry, "/status").is_none_or(|status| !known.contains(&status)))
        {
            let reason = "an entry of the plan has no status";
            return Err(Stop::at(recording, update.index, reason));
        }
    }
    Ok(seen)
}
