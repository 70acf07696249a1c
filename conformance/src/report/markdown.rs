//! The report that a team puts into its README, or that a build shows as its summary.
//!
//! It is Markdown as GitHub reads it. What the agent or the client has said is text in
//! it, never markup.

use std::fmt::Write as _;

use super::document::place;
use super::escape::{block, html_line, markdown};
use super::{Document, Entry, Tally};
use crate::requirements::Tier;

/// The report as Markdown.
#[must_use]
pub fn markdown_report(report: &Document) -> String {
    let mut out = String::new();
    let name = markdown(&report.name);
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "### {name}: {}\n\n{}.\n",
        report.verdict.as_str(),
        markdown(&report.summary())
    );
    if let Some(why) = report.why_incomplete() {
        let _ = writeln!(out, "Incomplete, because {}.\n", markdown(&why));
    }
    if let Some(cause) = &report.root_cause {
        let reason = markdown(&format!("{}. {}", cause.reason, cause.remedy));
        let _ = writeln!(out, "Root cause ({}): {reason}\n", markdown(&cause.step));
    }
    for stale in &report.stale {
        let (id, reason) = (markdown(&stale.id), markdown(&stale.reason));
        let _ = writeln!(out, "Stale accepted finding {id}: {reason}\n");
    }
    matrix(&mut out, report);
    for entry in report.failures() {
        failure(&mut out, entry);
    }
    let provenance = report.provenance();
    let provenance = provenance
        .iter()
        .map(|(name, value)| format!("{name}: {}", markdown(value)));
    let _ = write!(
        out,
        "\n{}{}\n",
        provenance.collect::<Vec<_>>().join("; "),
        match &report.again {
            None => String::new(),
            Some(again) => format!("\n\n{}", block(again, "sh").trim_end()),
        }
    );
    out
}

fn matrix(out: &mut String, report: &Document) {
    out.push_str("| passed of run |");
    for tier in Tier::ALL {
        let _ = write!(out, " {} |", tier.as_str());
    }
    out.push_str(" inconclusive | skipped |\n|---|");
    out.push_str(&"--:|".repeat(Tier::ALL.len() + 2));
    out.push('\n');
    for (area, entries) in report.areas() {
        row(out, &markdown(area), &entries);
    }
    row(
        out,
        "**all**",
        &report.requirements.iter().collect::<Vec<_>>(),
    );
}

fn row(out: &mut String, title: &str, entries: &[&Entry]) {
    let _ = write!(out, "| {title} |");
    for tier in Tier::ALL {
        let of_tier = entries.iter().filter(|entry| entry.tier == tier);
        let _ = write!(out, " {} |", Tally::of(of_tier.copied()).ratio());
    }
    let all = Tally::of(entries.iter().copied());
    let _ = writeln!(out, " {} | {} |", all.inconclusive, all.skip);
}

fn failure(out: &mut String, entry: &Entry) {
    let _ = writeln!(
        out,
        "\n<details><summary><b>{}</b> ({}): {}</summary>\n",
        html_line(&entry.id),
        entry.tier.as_str(),
        html_line(entry.why())
    );
    let _ = writeln!(out, "> {} ({})\n", markdown(&entry.quote), link(entry));
    if let Some(because) = &entry.because {
        let _ = writeln!(out, "{}\n", markdown(because));
    }
    if let Some(reason) = &entry.accepted {
        let _ = writeln!(out, "Accepted: {}\n", markdown(reason));
    }
    for (name, said) in entry.evidence() {
        let _ = writeln!(out, "{name}\n\n{}", block(said, "json"));
    }
    if let Some(again) = &entry.again {
        let _ = writeln!(out, "again\n\n{}", block(again, "sh"));
    }
    out.push_str("</details>\n");
}

/// Where the sentence stands. A report that was read from a file may name anything.
fn link(entry: &Entry) -> String {
    let place = markdown(place(&entry.cite));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/#:".contains(c);
    if entry.cite.starts_with("https://") && entry.cite.chars().all(plain) {
        format!("[{place}]({})", entry.cite)
    } else {
        place
    }
}
