//! The formats of a report, and what their templates are given: its JSON, and what follows from it.

use serde::Serialize;

use super::document::{Document, Entry};
use super::hints::hints;
use super::render::render;
use super::row_pages::RowPages;
use super::tally::Tally;
use crate::Result;
use crate::requirements::Tier;

/// Returns the report as a person reads it in a terminal.
///
/// # Errors
/// When it does not fit its template.
pub fn text(report: &Document) -> Result<String> {
    render("report.txt", View::of(report, &RowPages::default()))
}

/// Returns the root cause and the failures, then one line of counts: what a test panics with.
///
/// # Errors
/// When it does not fit its template.
pub fn failures_text(report: &Document) -> Result<String> {
    let text = render("failures.txt", View::of(report, &RowPages::default()))?;
    Ok(text.trim_end().to_owned())
}

/// Returns the report as a page for a browser.
///
/// Every requirement has an anchor, which is its id: that of its failure, else that of its row. A failure
/// links to the page of its requirement.
///
/// # Errors
/// When it does not fit its template.
pub fn html_report(report: &Document, pages: &RowPages) -> Result<String> {
    render("report.html", View::of(report, pages))
}

/// Returns the report as Markdown, for a README or the summary of a build.
///
/// A failure links to the page of its requirement.
///
/// # Errors
/// When it does not fit its template.
pub fn markdown_report(report: &Document, pages: &RowPages) -> Result<String> {
    render("report.md", View::of(report, pages))
}

/// Returns the report as JUnit's XML, which continuous integration reads.
///
/// # Errors
/// When it does not fit its template.
pub fn junit(report: &Document) -> Result<String> {
    render("junit.xml", View::of(report, &RowPages::default()))
}

/// A report and what follows from it.
#[derive(Debug, Serialize)]
struct View<'a> {
    report: &'a Document,
    summary: String,
    incomplete: Option<String>,
    provenance: Vec<(&'static str, String)>,
    hints: Vec<String>,
    rows: Vec<Row<'a>>,
    /// What weighs most comes first.
    failures: Vec<Row<'a>>,
    areas: Vec<Area<'a>>,
    all: Area<'a>,
}

/// A requirement.
#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// Whether it decides the verdict.
    fails: bool,
    /// Whether it is about a capability that is not declared.
    undeclared: bool,
    /// The reason of its verdict.
    why: &'a str,
    /// What was sent and what came.
    evidence: Vec<(&'static str, &'a str)>,
    /// The address of its section in the pages of requirements.
    page: Option<&'a str>,
}

/// Requirements, and how many of them have which verdict.
#[derive(Debug, Serialize)]
struct Area<'a> {
    name: &'a str,
    sum: Tally,
    /// By tier.
    tiers: Vec<Tally>,
    rows: Vec<Row<'a>>,
}

impl<'a> View<'a> {
    /// The view of a report.
    fn of(report: &'a Document, pages: &'a RowPages) -> Self {
        let row = |entry: &&'a Entry| Row::of(entry, report.strict, pages);
        let rows = |entries: &[&'a Entry]| entries.iter().map(row).collect::<Vec<_>>();
        let area = |name, entries: &[&'a Entry]| Area {
            name,
            sum: Tally::of(entries.iter().copied()),
            tiers: Tier::ALL.map(|tier| of_tier(entries, tier)).to_vec(),
            rows: rows(entries),
        };
        let all: Vec<&Entry> = report.requirements.iter().collect();
        let areas = report.areas();
        Self {
            summary: report.summary(),
            incomplete: report.why_incomplete(),
            provenance: report.provenance(),
            hints: hints(report),
            rows: rows(&all),
            failures: rows(&report.failures()),
            areas: areas.iter().map(|(name, of)| area(name, of)).collect(),
            all: area("all", &all),
            report,
        }
    }
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry, strict: bool, pages: &'a RowPages) -> Self {
        Self {
            entry,
            fails: entry.fails(strict),
            undeclared: entry.is_undeclared(),
            why: entry.why(),
            evidence: entry.evidence().collect(),
            page: pages.address(&entry.id),
        }
    }
}

fn of_tier(entries: &[&Entry], tier: Tier) -> Tally {
    let entries = entries.iter().copied();
    Tally::of(entries.filter(|entry| entry.tier == tier))
}
