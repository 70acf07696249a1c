//! Plans.

use crate::harness::{Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::{items, text, watch};
use crate::requirements::{Check, NamedCheck};

use Check::Run;

const NONE: &str = "no plan; the prompt `plan` may cause one";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("plan.plan-id", watch(plan_id, NONE)),
    ("plan.entries", watch(entries, NONE)),
    ("plan.same-plan", Run(same_plan)),
];

fn plan_id(view: &View<'_>) -> RuleResult {
    match view.update_of("plan_update") {
        None => Ok(0),
        Some(update) if text(update.body, "/plan/planId").is_some() => Ok(1),
        Some(_) => violation("expected `planId` in the plan, got none"),
    }
}

fn entries(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("plan_update") else {
        return Ok(0);
    };
    let mut entries = items(update.body, "/plan/entries");
    if entries.any(|entry| text(entry, "/content").is_none_or(|text| text.trim().is_empty())) {
        return violation("expected a text of the plan's entry, got none");
    }
    Ok(1)
}

fn same_plan(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "plan")?;
    let updates = conn.recording().updates();
    let within = turn.request..turn.end;
    let plans =
        updates.filter(|update| update.kind == "plan_update" && within.contains(&update.index));
    let plans: Vec<_> = plans
        .map(|update| (update.index, text(update.body, "/plan/planId")))
        .collect();
    match plans.as_slice() {
        [] | [_] => skip("the agent did not update a plan"),
        [(_, first), rest @ ..] => match rest.last() {
            Some((index, _)) if rest.iter().all(|(_, id)| id != first) => Err(conn.at(
                *index,
                "expected updates of one plan, got a plan of its own in each",
            )),
            _ => Ok(()),
        },
    }
}
