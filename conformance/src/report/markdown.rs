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
        report.verdict(),
        markdown(&report.summary())
    );
    matrix(&mut out, report);
    for entry in report.failures() {
        failure(&mut out, entry);
    }
    let _ = write!(
        out,
        "\nAgent Client Protocol, version {} (specification {}); `acp-conformance` {}, {:.1} s{}\n",
        report.protocol,
        markdown(&report.specification),
        report.suite,
        report.seconds,
        match &report.again {
            None => ".".to_owned(),
            Some(again) => format!(":\n\n{}", block(again, "sh").trim_end()),
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
