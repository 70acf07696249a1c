//! Plans.

use super::steps::{ready, work};
use crate::harness::{Outcome, inconclusive};
use crate::requirements::watch::{items, text, watch};
use crate::requirements::{Check, Requirement, must, should};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};

use Check::{Excluded, Run};

const NONE: &str = "no plan; the prompt `plan` may cause one";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "plan.plan-id",
        "v2/agent-plan#extensibility",
        "Every plan content variant, including custom or future variants, MUST carry a `planId`.",
        watch(plan_id, NONE),
    ),
    must(
        "plan.entries",
        "v2/agent-plan#plan-entries",
        "A human-readable description of what this task aims to accomplish",
        watch(entries, NONE),
    ),
    should(
        "plan.same-plan",
        "v2/agent-plan#updating-plans",
        "it SHOULD report updates by sending more `session/update` notifications with the same",
        Run(same_plan),
    ),
    must(
        "plan.complete",
        "v2/agent-plan#updating-plans",
        "the Agent MUST send a complete list of all plan entries in each update",
        Excluded(
            "entries may be dropped from a plan, and what was left out cannot be told from that",
        ),
    ),
    should(
        "plan.reported",
        "v2/agent-plan#creating-plans",
        "When the language model creates an execution plan, the Agent SHOULD report it",
        Excluded("what the model has planned without telling cannot be seen"),
    ),
];

fn plan_id(view: &View<'_>) -> Seen {
    match view.update_of("plan_update") {
        None => Ok(0),
        Some(update) if text(update.body, "/plan/planId").is_some() => Ok(1),
        Some(_) => fault("a plan without `planId`"),
    }
}

fn entries(view: &View<'_>) -> Seen {
    let Some(update) = view.update_of("plan_update") else {
        return Ok(0);
    };
    let mut entries = items(update.body, "/plan/entries");
    if entries.any(|entry| text(entry, "/content").is_none_or(|text| text.trim().is_empty())) {
        return fault("an entry of the plan does not say what it is about");
    }
    Ok(1)
}

fn same_plan(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    conn.word(&["plan"])?;
    work(conn, &session, "plan")?;
    let updates = conn.recording().updates();
    let plans = updates.filter(|update| update.kind == "plan_update");
    let plans: Vec<_> = plans
        .map(|update| (update.index, text(update.body, "/plan/planId")))
        .collect();
    match plans.as_slice() {
        [] | [_] => inconclusive("the agent did not update a plan"),
        [(_, first), rest @ ..] => match rest.last() {
            Some((index, _)) if rest.iter().all(|(_, id)| id != first) => {
                Err(conn.at(*index, "every update is about a plan of its own"))
            }
            _ => Ok(()),
        },
    }
}
