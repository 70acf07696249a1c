//! Several reports side by side: their results by area, where they differ, and what
//! of the protocol only some have exercised.
//!
//! The first report is what the last one is compared with, so that two runs of one agent are
//! shown as what became of it: regressions first, then what was fixed.
//!
//! Reports may come from different versions of the suite, or from runs of a part of it.
//! A requirement that is not in a report is `absent` there: it is neither passed nor
//! failed, is no difference by itself, and is listed apart.

mod change;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;

use serde::Serialize;

pub use self::change::Change;
pub use self::view::{html_comparison, markdown_comparison, text_comparison};
use super::render::requirements;
use super::{Conformity, Document, Entry, Outcome, Tally, table};
use crate::requirements::Tier;
use crate::suite::Coverage;
use crate::wire::Party;
use crate::{Error, Result};

/// The JSON Schema of a [`Comparison`] as `acp-conformance compare --json` writes it.
pub const SCHEMA: &str = include_str!("../../../schema/comparison.json");

/// The version of the format that [`Comparison`] is; it counts the changes.
const VERSION: u32 = 1;

/// Several reports, side by side. Every list of cells is in the order of the subjects.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The version of the format.
    pub version: u32,
    /// Who was tested.
    pub kind: Party,
    /// The version of the protocol.
    pub protocol: u64,
    /// What is compared.
    pub subjects: Vec<Target>,
    /// Their results, by area.
    pub areas: Vec<AreaRow>,
    /// The requirements with different verdicts; regressions first.
    pub differences: Vec<Difference>,
    /// The requirements that all of them break.
    pub broken_by_all: Vec<String>,
    /// Requirements that are in some of the reports only.
    pub absent: Vec<Absent>,
    /// Methods and kinds that only some have exercised.
    pub coverage: Vec<UseRow>,
}

/// One of the reports.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Target {
    /// Its number, from 1, and the name of what was tested.
    pub label: String,
    /// The file of the report.
    pub file: PathBuf,
    /// The command under test.
    pub command: String,
    /// The version of the suite.
    pub suite: String,
    /// The first digits of the hash of the suite's table of requirements; empty in reports of older suites.
    pub table: String,
    /// The revision of the specification that its requirements quote, and its date.
    pub specification: String,
    /// When the run began, in UTC; empty in reports of older suites.
    pub date: String,
    /// How many prompts an agent was sent.
    pub prompts: usize,
    /// The verdict of the run.
    pub verdict: Conformity,
    /// Whether it conforms.
    pub conformant: bool,
    /// Whether requirements of the tier `should` decided too.
    pub strict: bool,
    /// The verdicts of its requirements.
    pub all: Tally,
    /// Whether the report says what was exercised.
    pub has_coverage: bool,
}

/// An area.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AreaRow {
    /// Its name.
    pub area: String,
    /// The verdicts of its requirements.
    pub cells: Vec<Tally>,
}

/// A requirement with different verdicts.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The requirement, as the first report has it.
    #[serde(flatten)]
    pub requirement: Listed,
    /// What became of it.
    pub change: Change,
    /// Its verdict; `None` where it is absent.
    pub cells: Vec<Option<Cell>>,
}

/// What identifies a requirement.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its area.
    pub area: String,
    /// How much it weighs.
    pub tier: Tier,
    /// The sentence of the specification.
    pub quote: String,
    /// Where the sentence stands.
    pub cite: String,
}

/// The verdict of a requirement, and why.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Cell {
    /// Its verdict.
    pub verdict: Outcome,
    /// Why; absent when it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a report lacks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Absent {
    /// The subject's label.
    pub label: String,
    /// What became of them: [`Change::New`] where it is the first report, [`Change::Removed`] where
    /// it is the last, else [`Change::Other`].
    pub change: Change,
    /// Requirements that other reports have.
    pub ids: Vec<String>,
    /// Those of them that fail in the last report that has them.
    pub failing: Vec<String>,
}

/// A method or kind that only some have exercised.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct UseRow {
    /// `method`, or the name of the union.
    pub of: String,
    /// The name, with who handles or sends it.
    pub name: String,
    /// How often; `None` where the report does not know of it.
    pub cells: Vec<Option<usize>>,
}

impl Comparison {
    /// Compares reports, each with the file that it was read from.
    ///
    /// # Errors
    /// When there are fewer than two, or they are not about the same side of the same
    /// version of the protocol.
    pub fn of(reports: &[(PathBuf, Document)]) -> Result<Self> {
        let [(first_file, first), _, ..] = reports else {
            return Err(Error::NothingToCompare);
        };
        for (path, report) in reports {
            let differs = |what: String, mend: &str| Error::NoReport {
                path: path.clone(),
                reason: format!(
                    "it is about {what}, unlike {}; {mend}",
                    first_file.display()
                ),
            };
            if report.kind != first.kind {
                let (kind, whose) = (report.kind, first.kind);
                let mend = "compare agents with agents, and clients with clients";
                return Err(differs(
                    format!("the {kind} side, not the {whose} side"),
                    mend,
                ));
            }
            if report.protocol != first.protocol {
                let version = report.protocol;
                let mend = "compare reports on one version of the protocol";
                return Err(differs(format!("version {version} of the protocol"), mend));
            }
        }
        let documents: Vec<&Document> = reports.iter().map(|(_, report)| report).collect();
        let subjects = reports.iter().enumerate();
        let subjects: Vec<Target> = subjects
            .map(|(index, (file, report))| Target::of(index, file.clone(), report))
            .collect();
        let rows = rows(&documents);
        let mut differences: Vec<_> = rows.iter().filter_map(difference).collect();
        differences.sort_by_key(|difference| difference.change);
        Ok(Self {
            version: VERSION,
            kind: first.kind,
            protocol: first.protocol,
            areas: areas(&documents),
            differences,
            broken_by_all: broken_by_all(&rows),
            absent: absent(&rows, &subjects),
            coverage: coverage(&documents),
            subjects,
        })
    }

    /// Returns the requirements that pass in the first report, and fail in the last.
    pub fn regressions(&self) -> impl Iterator<Item = &Difference> {
        let differences = self.differences.iter();
        differences.filter(|difference| difference.change == Change::Regression)
    }

    /// What a reader must know before trusting the comparison, in sentences.
    #[must_use]
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions = Vec::new();
        let mixed = |of: fn(&Target) -> String| {
            let mut values = self.subjects.iter().map(of);
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let each = |of: fn(&Target) -> String| {
            let each = self.subjects.iter();
            let each = each.map(|subject| format!("{}: {}", subject.label, of(subject)));
            each.collect::<Vec<_>>().join(", ")
        };
        if mixed(Target::suite) {
            let versions = each(Target::suite);
            cautions.push(format!(
                "The reports are of different versions of the suite ({versions})."
            ));
        }
        if mixed(|subject| subject.specification.clone()) {
            let revisions = each(|subject| subject.specification.clone());
            cautions.push(format!(
                "The requirements quote different revisions of the specification ({revisions})."
            ));
        }
        if mixed(|subject| subject.strict.to_string()) {
            let strict = each(|subject| {
                if subject.strict {
                    "strict"
                } else {
                    "not strict"
                }
                .to_owned()
            });
            cautions.push(format!("The verdicts were not reached alike ({strict})."));
        }
        for Absent { label, ids, .. } in &self.absent {
            cautions.push(format!(
                "{label} lacks {}, left out of its run or unknown to its suite.",
                requirements(ids.len())
            ));
        }
        let without = self.subjects.iter().filter(|subject| !subject.has_coverage);
        let without: Vec<_> = without.map(|subject| subject.label.as_str()).collect();
        if self.kind == Party::Agent && !without.is_empty() {
            cautions.push(format!(
                "Of {} it is not known what was exercised: only a part of the suite was run.",
                without.join(", ")
            ));
        }
        cautions
    }
}

impl Target {
    /// Returns the version of the suite, and the hash of its table if the report has it.
    fn suite(&self) -> String {
        let suite = table::suite(&self.suite, &self.table);
        suite.trim_start_matches("acp-conformance ").to_owned()
    }

    /// Returns where the report comes from, after its label and verdict.
    fn provenance(&self) -> String {
        let file = self.file.display();
        let (suite, prompts) = (&self.suite, self.prompts);
        let began = match self.date.as_str() {
            "" => String::new(),
            date => format!(", began {date}"),
        };
        format!("{file}: acp-conformance {suite}{began}, {prompts} prompts")
    }

    fn of(index: usize, file: PathBuf, report: &Document) -> Self {
        Self {
            label: format!("{} {}", index + 1, report.name),
            file,
            command: report.command.clone(),
            suite: report.suite.clone(),
            table: report.table.clone(),
            specification: report.specification.clone(),
            date: report.date.clone(),
            prompts: report.prompts,
            verdict: report.verdict,
            conformant: report.conformant,
            strict: report.strict,
            all: Tally::of(&report.requirements),
            has_coverage: report.coverage.is_some(),
        }
    }
}

impl From<&Entry> for Cell {
    fn from(entry: &Entry) -> Self {
        Self {
            verdict: entry.verdict,
            reason: entry.reason.clone(),
        }
    }
}

/// A requirement in each of the reports.
type Row<'a> = Vec<Option<&'a Entry>>;

/// Every requirement of any report, in the order of the first that has it.
fn rows<'a>(documents: &[&'a Document]) -> Vec<Row<'a>> {
    let ids = merged(documents, |entry| entry.id.as_str());
    let find = |document: &&'a Document, id: &str| -> Option<&'a Entry> {
        document.requirements.iter().find(|entry| entry.id == id)
    };
    let row = |id: &str| {
        documents
            .iter()
            .map(|document| find(document, id))
            .collect()
    };
    ids.into_iter().map(row).collect()
}

/// Names in the order of the reports, each once. A name that only a later report has
/// stands after the one that it follows there.
fn merged<'a>(documents: &[&'a Document], name: fn(&'a Entry) -> &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for document in documents {
        let mut place = 0;
        for entry in &document.requirements {
            let name = name(entry);
            match names.iter().position(|known| *known == name) {
                Some(at) => place = at + 1,
                None => {
                    names.insert(place, name);
                    place += 1;
                }
            }
        }
    }
    names
}

fn areas(documents: &[&Document]) -> Vec<AreaRow> {
    let tally = |document: &&Document, area: &str| {
        let entries = document.requirements.iter();
        Tally::of(entries.filter(|entry| entry.area == area))
    };
    let names = merged(documents, |entry| entry.area.as_str());
    let row = |area: &str| AreaRow {
        area: area.to_owned(),
        cells: documents
            .iter()
            .map(|document| tally(document, area))
            .collect(),
    };
    names.into_iter().map(row).collect()
}

fn difference(row: &Row<'_>) -> Option<Difference> {
    let mut present = row.iter().flatten();
    let first = present.next()?;
    if present.all(|entry| entry.verdict == first.verdict) {
        return None;
    }
    Some(Difference {
        requirement: Listed {
            id: first.id.clone(),
            area: first.area.clone(),
            tier: first.tier,
            quote: first.quote.clone(),
            cite: first.cite.clone(),
        },
        change: Change::of(row),
        cells: row.iter().map(|entry| entry.map(Cell::from)).collect(),
    })
}

fn broken_by_all(rows: &[Row<'_>]) -> Vec<String> {
    let fails = |entry: &Option<&Entry>| entry.is_some_and(|entry| entry.verdict == Outcome::Fail);
    let rows = rows.iter().filter(|row| row.iter().all(fails));
    rows.filter_map(|row| Some(row.first()?.as_ref()?.id.clone()))
        .collect()
}

fn absent(rows: &[Row<'_>], subjects: &[Target]) -> Vec<Absent> {
    let absent = subjects.iter().enumerate().map(|(index, subject)| {
        let lacking = rows
            .iter()
            .filter(|row| row.get(index).is_none_or(Option::is_none));
        let known = lacking.filter_map(|row| row.iter().flatten().next_back());
        let fails = |entry: &&&Entry| entry.verdict == Outcome::Fail;
        let failing = known.clone().filter(fails);
        Absent {
            label: subject.label.clone(),
            change: match index {
                0 => Change::New,
                index if index + 1 == subjects.len() => Change::Removed,
                _ => Change::Other,
            },
            ids: known.map(|entry| entry.id.clone()).collect(),
            failing: failing.map(|entry| entry.id.clone()).collect(),
        }
    });
    absent.filter(|absent| !absent.ids.is_empty()).collect()
}

impl Absent {
    /// Returns the heading above its requirements.
    fn title(&self) -> String {
        let what = match self.change {
            Change::New | Change::Removed => self.change.title(0),
            _ => "Not in the report on".to_owned(),
        };
        format!("{what} {}", self.label)
    }

    /// Returns its requirements; one that fails says so.
    fn names(&self) -> impl Iterator<Item = String> {
        self.ids.iter().map(|id| match self.failing.contains(id) {
            true => format!("{id} (fail)"),
            false => id.clone(),
        })
    }
}

/// What only some have exercised, of the reports that tell.
fn coverage(documents: &[&Document]) -> Vec<UseRow> {
    let mut rows: Vec<UseRow> = Vec::new();
    for (index, document) in documents.iter().enumerate() {
        let Some(coverage) = &document.coverage else {
            continue;
        };
        for (of, name, uses) in uses(coverage) {
            let known = rows.iter().position(|row| row.of == of && row.name == name);
            let place = known.unwrap_or_else(|| {
                let cells = vec![None; documents.len()];
                rows.push(UseRow { of, name, cells });
                rows.len() - 1
            });
            let cell = rows.get_mut(place).and_then(|row| row.cells.get_mut(index));
            if let Some(cell) = cell {
                *cell = Some(uses);
            }
        }
    }
    let differs = |row: &UseRow| {
        let used = |cell: &usize| *cell > 0;
        row.cells.iter().flatten().any(used) && !row.cells.iter().flatten().all(used)
    };
    rows.retain(differs);
    rows
}

fn uses(coverage: &Coverage) -> impl Iterator<Item = (String, String, usize)> {
    let methods = coverage.methods.iter().map(|method| {
        let name = format!("{} of the {}", method.method, method.side);
        ("method".to_owned(), name, method.succeeded)
    });
    let kinds = coverage.unions.iter().flat_map(|union| {
        let of = union.name.to_string();
        let kinds = union.kinds.iter();
        kinds.map(move |kind| (of.clone(), kind.kind.clone(), kind.by_agent))
    });
    methods.chain(kinds)
}
