//! The comparison that a person reads in a terminal.

use std::fmt::Write as _;

use super::change::groups;
use super::{Comparison, Difference, requirements};
use crate::report::escape::terminal;
use crate::report::{Outcome, Tally};
use crate::wire::shorten;

/// How wide the column of a subject is, with the space before it.
const COLUMN: usize = 24;

/// How many requirements that a report lacks are named.
const NAMED: usize = 20;

/// The comparison as text.
#[must_use]
pub fn text_comparison(comparison: &Comparison) -> String {
    let mut out = String::new();
    for subject in &comparison.subjects {
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{}: {} ({})",
            subject.label,
            subject.verdict.as_str(),
            subject.provenance()
        );
    }
    for caution in comparison.cautions() {
        let _ = writeln!(out, "{caution}");
    }
    areas(&mut out, comparison);
    differences(&mut out, comparison);
    if !comparison.broken_by_all.is_empty() {
        let ids = comparison.broken_by_all.join(", ");
        let _ = writeln!(out, "\nBroken by all of them: {ids}");
    }
    for absent in &comparison.absent {
        let named = absent.ids.len().min(NAMED);
        let ids = absent.names().take(named).collect::<Vec<_>>().join(", ");
        let more = match absent.ids.len() - named {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(out, "\n{}: {ids}{more}", absent.title());
    }
    coverage(&mut out, comparison);
    terminal(&out)
}

fn areas(out: &mut String, comparison: &Comparison) {
    let names = comparison.areas.iter().map(|row| row.area.len());
    let width = names.max().unwrap_or_default().max(4);
    heads(out, comparison, width);
    let _ = write!(out, "{:width$}", "");
    for _ in &comparison.subjects {
        let _ = write!(out, "{:>9}{:>5}{:>5}{:>5}", "pass", "fail", "inc.", "skip");
    }
    out.push('\n');
    for row in &comparison.areas {
        let _ = write!(out, "{:<width$}", row.area);
        cells(out, row.cells.iter());
    }
    let _ = write!(out, "{:<width$}", "all");
    cells(out, comparison.subjects.iter().map(|subject| &subject.all));
}

fn cells<'a>(out: &mut String, tallies: impl Iterator<Item = &'a Tally>) {
    for tally in tallies {
        let number = |count: usize| match count {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        let _ = write!(
            out,
            "{:>9}{:>5}{:>5}{:>5}",
            number(tally.pass),
            number(tally.fail),
            number(tally.inconclusive),
            number(tally.skip)
        );
    }
    out.push('\n');
}

fn differences(out: &mut String, comparison: &Comparison) {
    let differences = &comparison.differences;
    if differences.is_empty() {
        out.push_str("\nThey differ in no requirement that more than one of them has.\n");
        return;
    }
    let ids = differences.iter().map(|row| row.requirement.id.len());
    let width = ids.max().unwrap_or_default() + 2 + "capability".len();
    let _ = write!(out, "\nThey differ in {}:", requirements(differences.len()));
    heads(out, comparison, width);
    for (change, rows) in groups(differences) {
        let _ = writeln!(out, "{}", change.title(comparison.subjects.len()));
        for row in rows {
            difference(out, row, width);
        }
    }
}

fn difference(out: &mut String, row: &Difference, width: usize) {
    let id = &row.requirement.id;
    let tier = row.requirement.tier.as_str();
    let gap = width.saturating_sub(id.len());
    let _ = write!(out, "{id}{tier:>gap$}");
    for cell in &row.cells {
        let word = match cell.as_ref().map(|cell| cell.verdict) {
            None => "absent",
            Some(Outcome::Fail) => "FAIL",
            Some(word) => word.as_str(),
        };
        let _ = write!(out, "{word:>COLUMN$}");
    }
    out.push('\n');
    for (index, cell) in row.cells.iter().enumerate() {
        if let Some(cell) = cell
            && cell.verdict == Outcome::Fail
        {
            let reason = cell.reason.as_deref().unwrap_or_default();
            let reason = shorten(&reason.replace('\n', " "), 200);
            let _ = writeln!(out, "    {}: {reason}", index + 1);
        }
    }
}

fn coverage(out: &mut String, comparison: &Comparison) {
    if comparison.coverage.is_empty() {
        return;
    }
    let names = comparison.coverage.iter();
    let names = names.map(|row| row.of.len() + 1 + row.name.len());
    let width = names.max().unwrap_or_default();
    out.push_str("\nExercised by some of them only:");
    heads(out, comparison, width);
    for row in &comparison.coverage {
        let _ = write!(out, "{:<width$}", format!("{} {}", row.of, row.name));
        for cell in &row.cells {
            let uses = match cell {
                None => "unknown".to_owned(),
                // Its calls may have been refused.
                Some(0) if row.of == "method" => "NO SUCCESS".to_owned(),
                Some(0) => "NEVER".to_owned(),
                Some(uses) => uses.to_string(),
            };
            let _ = write!(out, "{uses:>COLUMN$}");
        }
        out.push('\n');
    }
}

/// A line with the subjects' labels, after one of `width` to the left of them.
fn heads(out: &mut String, comparison: &Comparison, width: usize) {
    let _ = write!(out, "\n{:width$}", "");
    for subject in &comparison.subjects {
        // Escaped before it is measured.
        let label = shorten(&terminal(&subject.label), COLUMN - 3);
        let _ = write!(out, "{label:>COLUMN$}");
    }
    out.push('\n');
}
