//! Plans.

use super::NamedCheck;
use super::passive::{items, text, watch};
use crate::passive::{RuleResult, View, violation};

const NONE: &str = "no plan; the prompt `plan` may cause one";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("plan.entries", watch(entries, NONE)),
    ("plan.status", watch(status, NONE)),
];

fn entries(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("plan") else {
        return Ok(0);
    };
    let mut entries = items(update.body, "/entries");
    if entries.any(|entry| text(entry, "/content").is_none_or(|text| text.trim().is_empty())) {
        return violation("expected a text of the plan's entry, got none");
    }
    Ok(1)
}

fn status(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("plan") else {
        return Ok(0);
    };
    let known = ["pending", "in_progress", "completed"];
    let mut entries = items(update.body, "/entries");
    if entries.any(|entry| text(entry, "/status").is_none_or(|status| !known.contains(&status))) {
        return violation("expected a status of the plan's entry, got none");
    }
    Ok(1)
}
