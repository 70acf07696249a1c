//! The comparison as Markdown, for a README or a build's summary.

use std::fmt::Write as _;

use super::change::groups;
use super::{Comparison, Difference, requirements};
use crate::report::Outcome;
use crate::report::escape::{code, markdown};

/// The comparison as Markdown.
#[must_use]
pub fn markdown_comparison(comparison: &Comparison) -> String {
    let mut out = format!(
        "### {} {}s side by side, Agent Client Protocol version {}\n\n",
        comparison.subjects.len(),
        comparison.kind,
        comparison.protocol
    );
    summary(&mut out, comparison);
    for caution in comparison.cautions() {
        // Writing to a string does not fail.
        let _ = writeln!(out, "\n{}", markdown(&caution));
    }
    out.push_str("\npassed, failed, inconclusive, skipped:\n\n");
    heads(&mut out, comparison, "area");
    for row in &comparison.areas {
        let _ = write!(out, "| {} |", markdown(&row.area));
        for cell in &row.cells {
            let (pass, fail) = (cell.pass, cell.fail);
            let _ = write!(
                out,
                " {pass}, {fail}, {}, {} |",
                cell.inconclusive, cell.skip
            );
        }
        out.push('\n');
    }
    differences(&mut out, comparison);
    if !comparison.broken_by_all.is_empty() {
        let ids = comparison.broken_by_all.iter().map(|id| markdown(id));
        let ids = ids.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "\nBroken by all of them: {ids}");
    }
    for absent in &comparison.absent {
        let ids = absent.names().map(|name| markdown(&name));
        let ids = ids.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "\n{}: {ids}", markdown(&absent.title()));
    }
    coverage(&mut out, comparison);
    out
}

fn summary(out: &mut String, comparison: &Comparison) {
    out.push_str(
        "| | verdict | passed | failed | inconclusive | skipped |\n|---|---|--:|--:|--:|--:|\n",
    );
    for subject in &comparison.subjects {
        let all = &subject.all;
        let _ = writeln!(
            out,
            "| {} ({}) | {} | {} | {} | {} | {} |",
            markdown(&subject.label),
            markdown(&subject.provenance()),
            subject.verdict.as_str(),
            all.pass,
            all.fail,
            all.inconclusive,
            all.skip
        );
    }
}

fn differences(out: &mut String, comparison: &Comparison) {
    if comparison.differences.is_empty() {
        out.push_str("\nThey differ in no requirement that more than one of them has.\n");
        return;
    }
    let count = requirements(comparison.differences.len());
    let _ = writeln!(out, "\nThey differ in {count}:");
    for (change, rows) in groups(&comparison.differences) {
        let title = markdown(&change.title(comparison.subjects.len()));
        let _ = writeln!(out, "\n**{title}**\n");
        heads(out, comparison, "requirement");
        table(out, rows);
    }
}

fn table(out: &mut String, rows: &[Difference]) {
    for row in rows {
        let requirement = &row.requirement;
        let (id, tier) = (code(&requirement.id), requirement.tier.as_str());
        let _ = write!(out, "| {id} ({tier}) |");
        for cell in &row.cells {
            let cell = match cell {
                None => "absent".to_owned(),
                Some(cell) if cell.verdict == Outcome::Fail => {
                    let reason = cell.reason.as_deref().unwrap_or_default();
                    format!("**fail**: {}", markdown(reason))
                }
                Some(cell) => cell.verdict.as_str().to_owned(),
            };
            let _ = write!(out, " {cell} |");
        }
        out.push('\n');
    }
}

fn coverage(out: &mut String, comparison: &Comparison) {
    if comparison.coverage.is_empty() {
        return;
    }
    out.push_str("\nExercised by some of them only:\n\n");
    heads(out, comparison, "what");
    for row in &comparison.coverage {
        let _ = write!(out, "| {} {} |", markdown(&row.of), markdown(&row.name));
        for cell in &row.cells {
            let cell = match cell {
                None => "unknown".to_owned(),
                // Its calls may have been refused.
                Some(0) if row.of == "method" => "**no success**".to_owned(),
                Some(0) => "**never**".to_owned(),
                Some(uses) => uses.to_string(),
            };
            let _ = write!(out, " {cell} |");
        }
        out.push('\n');
    }
}

fn heads(out: &mut String, comparison: &Comparison, first: &str) {
    let _ = write!(out, "| {first} |");
    for subject in &comparison.subjects {
        let _ = write!(out, " {} |", markdown(&subject.label));
    }
    out.push_str("\n|---|");
    out.push_str(&"---|".repeat(comparison.subjects.len()));
    out.push('\n');
}
