//! Plans.

use serde_json::Value;

use crate::harness::{Cx, Outcome, skip};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::passive::{items, repeated, text, watch};
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
    let update = view.update_of("plan_update");
    // What another type of plan has is its own.
    let Some(update) = update.filter(|it| text(it.body, "/plan/type") == Some("items")) else {
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
    let plans = updates.filter(|update| {
        let is_ours = update.session == session && within.contains(&update.index);
        update.kind == "plan_update" && is_ours
    });
    let plans: Vec<_> = plans.map(|update| (update.index, update.body)).collect();
    let ids = plans.iter().filter_map(|(_, body)| plan_of(body));
    if repeated(ids).is_some() {
        return Ok(());
    }
    match stated_again(&plans) {
        Some(index) => Err(conn.at(
            index,
            "expected an update of the plan with this entry, got a plan of its own",
        )),
        None => skip("the agent did not update a plan"),
    }
}

fn plan_of(body: &Value) -> Option<&str> {
    text(body, "/plan/planId")
}

/// The place of a plan that has an entry of an earlier one with another id. Plans that have none in common may be
/// two plans.
fn stated_again(plans: &[(usize, &Value)]) -> Option<usize> {
    // What another type of plan has is its own, as a second form of this plan.
    let is_of_items = |body: &Value| text(body, "/plan/type") == Some("items");
    let entries = |body| {
        let all = items(body, "/plan/entries").filter(move |_| is_of_items(body));
        all.filter_map(|entry| text(entry, "/content"))
    };
    let mut later = plans.iter().enumerate();
    later.find_map(|(place, (index, body))| {
        let mut earlier = plans.iter().take(place);
        let has_entry = |entry: &str| entries(body).any(|own| own == entry);
        earlier
            .any(|(_, other)| plan_of(other) != plan_of(body) && entries(other).any(has_entry))
            .then_some(*index)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::passive::{Said, State};
    use crate::wire::{Kind, Party};

    fn plan(id: &str, content: &str) -> Value {
        json!({"plan": {"type": "items", "planId": id, "entries": [{"content": content}]}})
    }

    /// What a plan of an extension has is the extension's.
    #[test]
    fn entries_have_a_content_in_a_plan_of_items() {
        let is_broken = |kind: &str| {
            let plan = json!({"type": kind, "planId": "p", "entries": [{"column": "To do"}]});
            let update = json!({"sessionUpdate": "plan_update", "plan": plan});
            let params = json!({"sessionId": "s", "update": update});
            let value = json!({"method": "session/update", "params": params});
            let said = Said {
                place: 0,
                from: Party::Agent,
                kind: Kind::Notification,
                value: &value,
            };
            entries(&View::new(&State::whole(), said)).is_err()
        };
        assert!(is_broken("items"));
        assert!(!is_broken("_board"));
    }

    #[test]
    fn only_a_plan_with_an_entry_of_another_is_that_plan_again() {
        let (one, again) = (plan("1", "Look around"), plan("2", "Look around"));
        let other = plan("2", "Go home");
        assert_eq!(stated_again(&[(3, &one), (5, &again)]), Some(5));
        assert_eq!(stated_again(&[(3, &one), (5, &other)]), None);
        assert_eq!(stated_again(&[(3, &one), (5, &one)]), None);
        let mut board = again.clone();
        board["plan"]["type"] = json!("_board");
        assert_eq!(stated_again(&[(3, &one), (5, &board)]), None);
    }
}
