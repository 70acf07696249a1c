//! The report that a person reads: a table by area and tier, every failure with
//! its evidence and how to run it alone, coverage, and one line with the verdict.

use std::fmt::Write as _;

use super::escape::terminal;
use super::hints::hints;
use super::{CANCEL_TIMES, Document, Entry, Outcome, Tally};
use crate::requirements::Tier;
use crate::suite::{Coverage, RootCause, UnionUse};
use crate::wire::Party;

/// The whole report.
#[must_use]
pub fn text(report: &Document) -> String {
    let mut out = heading(report);
    out.push('\n');
    matrix(&mut out, report);
    for entry in report.failures() {
        failure(&mut out, entry);
    }
    let titles = [(
        Outcome::Inconclusive,
        "Inconclusive, which is neither good nor bad",
    )];
    for (word, title) in titles {
        remarks(&mut out, report, word, title);
    }
    skipped(&mut out, report);
    if !report.stale.is_empty() {
        let _ = writeln!(out, "\nStale accepted findings:");
    }
    for stale in &report.stale {
        let _ = writeln!(out, "  {}: {}", stale.id, indented(&stale.reason));
    }
    if let Some(coverage) = &report.coverage {
        covered(&mut out, coverage);
        members(&mut out, coverage, report.kind);
    }
    let (tested, other) = match report.kind {
        Party::Agent => (report.messages.agent, report.messages.client),
        Party::Client => (report.messages.client, report.messages.agent),
    };
    let _ = writeln!(
        out,
        "\n{tested} messages of the {}, {} of them invalid; {other} of the {}",
        report.kind,
        report.messages.invalid,
        report.kind.peer()
    );
    if let Some(times) = &report.cancel_times {
        let _ = writeln!(out, "{CANCEL_TIMES}: {}", times.in_words());
    }
    let provenance = report.provenance();
    let provenance = provenance
        .iter()
        .map(|(name, value)| format!("{name}: {value}"));
    let _ = writeln!(out, "{}", provenance.collect::<Vec<_>>().join("; "));
    for hint in hints(report) {
        let _ = writeln!(out, "hint: {hint}");
    }
    if let Some(why) = report.why_incomplete() {
        let _ = writeln!(out, "incomplete, because {why}");
    }
    let _ = writeln!(out, "{}: {}", report.verdict.as_str(), report.summary());
    terminal(&out)
}

/// The root cause and the failures, then one line of counts: what a test panics with.
#[must_use]
pub fn failures_text(report: &Document) -> String {
    let mut out = heading(report);
    for entry in report.failures() {
        failure(&mut out, entry);
    }
    let _ = write!(out, "\n{}: {}", report.verdict.as_str(), report.summary());
    terminal(&out)
}

/// What was tested, and the reason for all that follows if there is one.
fn heading(report: &Document) -> String {
    // Writing to a string does not fail.
    let mut out = format!("{}: {}\n", report.name, report.command_line());
    if let Some(cause) = &report.root_cause {
        root_cause(&mut out, report, cause);
    }
    out
}

fn matrix(out: &mut String, report: &Document) {
    let areas = report.areas();
    let width = areas.iter().map(|(area, _)| area.len()).max();
    let width = width.unwrap_or_default().max("passed of run".len()) + 2;
    let _ = write!(out, "{:<width$}", "passed of run");
    for tier in Tier::ALL {
        let _ = write!(out, "{:>12}", tier.as_str());
    }
    out.push_str("  inconclusive\n");
    for (area, entries) in areas {
        let _ = write!(out, "{area:<width$}");
        cells(out, &entries);
    }
    let _ = write!(out, "{:<width$}", "all");
    cells(out, &report.requirements.iter().collect::<Vec<_>>());
}

fn cells(out: &mut String, entries: &[&Entry]) {
    for tier in Tier::ALL {
        let of_tier = entries.iter().filter(|entry| entry.tier == tier);
        let _ = write!(out, "{:>12}", Tally::of(of_tier.copied()).ratio());
    }
    let _ = match Tally::of(entries.iter().copied()).inconclusive {
        0 => writeln!(out, "{:>14}", "-"),
        count => writeln!(out, "{count:>14}"),
    };
}

/// The one reason for everything that is blocked, and what to do about it.
fn root_cause(out: &mut String, report: &Document, cause: &RootCause) {
    let blocked = report.with(Outcome::Blocked).count();
    let (step, reason) = (&cause.step, indented(&cause.reason));
    let _ = writeln!(out, "\nBLOCKED {blocked} requirements, {step}: {reason}");
    if !cause.remedy.is_empty() {
        let _ = writeln!(out, "  do    {}", indented(&cause.remedy));
    }
    for (name, said) in [("sent", &cause.sent), ("came", &cause.came)] {
        if let Some(said) = said {
            let _ = writeln!(out, "  {name}  {}", indented(said.trim_end()));
        }
    }
}

fn failure(out: &mut String, entry: &Entry) {
    let Entry {
        id, quote, cite, ..
    } = entry;
    let tier = entry.tier.as_str();
    let word = match entry.accepted {
        Some(_) => "ACCEPTED",
        None => "FAIL",
    };
    let _ = writeln!(out, "\n{word} {id} ({tier}): {}", indented(entry.why()));
    if let Some(reason) = &entry.accepted {
        let _ = writeln!(out, "  known {}", indented(reason));
    }
    let _ = writeln!(out, "  spec  {quote}\n        {cite}");
    if let Some(because) = &entry.because {
        let _ = writeln!(out, "        {}", indented(because));
    }
    for (name, said) in entry.evidence() {
        let _ = writeln!(out, "  {name}  {}", indented(said));
    }
    if let Some(again) = &entry.again {
        let _ = writeln!(out, "  again {}", indented(again));
    }
}

/// With further lines below the first word; none of them is empty, for an empty
/// line ends a failure.
fn indented(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n        ")
}

fn remarks(out: &mut String, report: &Document, word: Outcome, title: &str) {
    let mut entries = report.with(word).peekable();
    if entries.peek().is_some() {
        let _ = writeln!(out, "\n{title}:");
    }
    for entry in entries {
        let _ = writeln!(out, "  {}: {}", entry.id, indented(entry.why()));
    }
}

/// How many skipped requirements of one kind have a line each, with the reason.
const FEW: usize = 10;

/// What does not apply, by the kind of the reason; many of one kind are a paragraph of their ids.
fn skipped(out: &mut String, report: &Document) {
    let kinds = [
        "Skipped, because the capability is not declared",
        "Skipped, because the profile lacks the prompt",
        "Skipped, because it was not seen in this run",
    ];
    let kind = |entry: &Entry| match entry.why() {
        _ if entry.is_undeclared() => 0,
        why if why.starts_with("the profile has no") => 1,
        _ => 2,
    };
    for (index, title) in kinds.iter().enumerate() {
        let entries = report.with(Outcome::Skip);
        let entries: Vec<_> = entries.filter(|entry| kind(entry) == index).collect();
        if entries.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{title}:");
        if entries.len() > FEW {
            let ids: Vec<_> = entries.iter().map(|entry| entry.id.clone()).collect();
            paragraph(out, "", &ids);
            continue;
        }
        for entry in entries {
            let _ = writeln!(out, "  {}: {}", entry.id, indented(entry.why()));
        }
    }
}

fn covered(out: &mut String, coverage: &Coverage) {
    let (used, all) = coverage.methods_used();
    let _ = writeln!(out, "\nExercised {used} of {all} methods");
    for side in ["agent", "client", "protocol"] {
        let methods: Vec<_> = coverage
            .methods
            .iter()
            .filter(|method| method.side == side)
            .map(|method| match (method.calls, method.succeeded) {
                (1.., 0) => format!("{} REFUSED", method.method),
                (_, succeeded) => counted(&method.method, succeeded),
            })
            .collect();
        paragraph(out, side, &methods);
    }
    for UnionUse { name, kinds } in &coverage.unions {
        let kinds_used = kinds.iter().filter(|kind| kind.by_agent > 0).count();
        let _ = writeln!(
            out,
            "Exercised {kinds_used} of {} kinds of {name} by the agent",
            kinds.len()
        );
        let by_agent: Vec<_> = kinds
            .iter()
            .map(|kind| counted(&kind.kind, kind.by_agent))
            .collect();
        paragraph(out, "agent", &by_agent);
        if kinds.iter().any(|kind| kind.by_client > 0) {
            let by_client: Vec<_> = kinds
                .iter()
                .map(|kind| counted(&kind.kind, kind.by_client))
                .collect();
            paragraph(out, "client", &by_client);
        }
    }
}

/// Members that who was tested never sent, by definition.
fn members(out: &mut String, coverage: &Coverage, by: Party) {
    let (used, all) = coverage.fields_used(by);
    if all == 0 {
        return;
    }
    let _ = writeln!(out, "Exercised {used} of {all} fields by the {by}; never:");
    let never = coverage.never_sent(by);
    let never: Vec<_> = never
        .iter()
        .map(|(of, names)| format!("{of}: {}", names.join(" ")))
        .collect();
    paragraph(out, "", &never);
}

fn counted(name: &str, times: usize) -> String {
    if times == 0 {
        format!("{name} NEVER")
    } else {
        format!("{name} {times}")
    }
}

/// Words in lines of at most a hundred characters.
fn paragraph(out: &mut String, title: &str, words: &[String]) {
    let mut line = format!("  {title:<9}");
    for (index, word) in words.iter().enumerate() {
        let comma = if index + 1 < words.len() { "," } else { "" };
        if line.len() + word.len() > 98 {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(11);
        }
        let _ = write!(line, "{word}{comma} ");
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
