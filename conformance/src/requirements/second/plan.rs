//! Plans.

use super::steps::{ready, work};
use crate::harness::{Outcome, inconclusive};
use crate::requirements::watch::{items, text, watch};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};

use Check::Run;

const NONE: &str = "no plan; the prompt `plan` may cause one";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("plan.plan-id", watch(plan_id, NONE)),
    ("plan.entries", watch(entries, NONE)),
    ("plan.same-plan", Run(same_plan)),
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
