//! The report that a person reads: a table by area and tier, every failure with
//! its evidence and how to run it alone, coverage, and one line with the verdict.

use std::fmt::Write as _;

use crate::clients;
use crate::requirements::{self, Check, Tier, pages};
use crate::suite::{Coverage, Report, Row, UnionUse, Verdict};

/// The whole report.
#[must_use]
pub fn text(report: &Report, strict: bool) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}: {}", report.agent, command(report));
    out.push('\n');
    matrix(&mut out, report);
    failures(&mut out, report);
    remarks(
        &mut out,
        report,
        "inconclusive",
        "Inconclusive, which is neither good nor bad",
    );
    remarks(
        &mut out,
        report,
        "skip",
        "Skipped, for the agent does not declare it",
    );
    if let Some(coverage) = &report.coverage {
        covered(&mut out, coverage);
    }
    let _ = writeln!(
        out,
        "\n{} messages of the agent, {} of them invalid; {} of the client; {:.1} s",
        report.from_agent,
        report.invalid,
        report.from_client,
        report.took.as_secs_f64()
    );
    let _ = writeln!(out, "{}", verdict(report, strict));
    out
}

/// The table of requirements.
#[must_use]
pub fn list() -> String {
    let mut out = String::new();
    let width = requirements::all().map(|(_, row)| row.id.len()).max();
    let width = width.unwrap_or_default();
    for (_, row) in requirements::all() {
        let tier = row.tier.as_str();
        let _ = writeln!(out, "{:<width$}  {tier:<10}  {}", row.id, row.quote);
        let cite = pages::address(row.cite).unwrap_or_else(|| row.cite.to_owned());
        let _ = writeln!(out, "{:width$}  {:10}  {cite}", "", "");
        if let Check::Excluded(reason) = row.check {
            let _ = writeln!(out, "{:width$}  {:10}  not checked: {reason}", "", "");
        }
    }
    let checked = requirements::all().filter(|(_, row)| !matches!(row.check, Check::Excluded(_)));
    let (all, checked) = (requirements::all().count(), checked.count());
    out.push('\n');
    for row in clients::all() {
        let tier = row.tier.as_str();
        let _ = writeln!(out, "{:<width$}  {tier:<10}  {}", row.id, row.quote);
        let cite = pages::address(row.cite).unwrap_or_else(|| row.cite.to_owned());
        let _ = writeln!(out, "{:width$}  {:10}  {cite}", "", "");
    }
    let of_clients = clients::all().count();
    let _ = writeln!(
        out,
        "\n{} requirements: {all} of agents, {checked} of them checked; {of_clients} of clients",
        all + of_clients
    );
    out
}

fn command(report: &Report) -> &str {
    if report.command.is_empty() {
        "within this process"
    } else {
        &report.command
    }
}

fn matrix(out: &mut String, report: &Report) {
    let _ = write!(out, "{:<16}", "passed of run");
    for tier in Tier::ALL {
        let _ = write!(out, "{:>12}", tier.as_str());
    }
    out.push('\n');
    for area in requirements::AREAS {
        let rows = || report.rows.iter().filter(|row| row.area.name == area.name);
        if rows().next().is_none() {
            continue;
        }
        let _ = write!(out, "{:<16}", area.name);
        cells(out, rows);
    }
    let _ = write!(out, "{:<16}", "all");
    cells(out, || report.rows.iter());
}

fn cells<'a, I: Iterator<Item = &'a Row>>(out: &mut String, rows: impl Fn() -> I) {
    for tier in Tier::ALL {
        let decided = |row: &&Row| {
            row.requirement.tier == tier && matches!(row.verdict, Verdict::Pass | Verdict::Fail(_))
        };
        let run = rows().filter(decided).count();
        let passed = rows()
            .filter(decided)
            .filter(|row| row.verdict == Verdict::Pass)
            .count();
        let cell = if run == 0 {
            "-".to_owned()
        } else {
            format!("{passed}/{run}")
        };
        let _ = write!(out, "{cell:>12}");
    }
    out.push('\n');
}

fn failures(out: &mut String, report: &Report) {
    for row in report.with("fail") {
        let Verdict::Fail(failure) = &row.verdict else {
            continue;
        };
        let (id, tier) = (row.requirement.id, row.requirement.tier.as_str());
        let cite = pages::address(row.requirement.cite).unwrap_or_default();
        let _ = writeln!(out, "\nFAIL {id} ({tier}): {}", failure.reason);
        let _ = writeln!(out, "  spec  {}", row.requirement.quote);
        let _ = writeln!(out, "        {cite}");
        let lines = [("sent", &failure.sent), ("came", &failure.came)];
        for (name, said) in lines {
            if let Some(said) = said {
                let said = said.trim_end().replace('\n', "\n        ");
                let _ = writeln!(out, "  {name}  {said}");
            }
        }
        let _ = writeln!(
            out,
            "  again acp-conformance agent --only {id}{}",
            again(report)
        );
    }
}

/// What follows the options to run against the same agent.
fn again(report: &Report) -> String {
    if report.command.is_empty() || report.command.ends_with(" reference-agent") {
        String::new()
    } else {
        format!(" -- {}", report.command)
    }
}

fn remarks(out: &mut String, report: &Report, verdict: &str, title: &str) {
    let mut rows = report.with(verdict).peekable();
    if rows.peek().is_some() {
        let _ = writeln!(out, "\n{title}:");
    }
    for row in rows {
        if let Verdict::Skip(reason) | Verdict::Inconclusive(reason) = &row.verdict {
            let _ = writeln!(out, "  {}: {reason}", row.requirement.id);
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
            .map(|method| counted(&method.method, method.succeeded))
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

fn verdict(report: &Report, strict: bool) -> String {
    let broken = |tier| report.count(tier, "fail");
    let passed = report.with("pass").count();
    let word = if report.is_conformant(strict) {
        "conformant"
    } else {
        "not conformant"
    };
    format!(
        "{word}: {passed} passed, {} broken that decide, {} that advise, {} for information, {} inconclusive, {} skipped",
        broken(Tier::Must) + broken(Tier::Capability),
        broken(Tier::Should),
        broken(Tier::Info),
        report.with("inconclusive").count(),
        report.with("skip").count()
    )
}
