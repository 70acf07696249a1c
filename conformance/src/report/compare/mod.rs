//! Several reports side by side: what they came to by area, where they differ, and what
//! of the protocol only some have exercised.
//!
//! Reports may come from different versions of the suite, or from runs of a part of it.
//! A requirement that is not in a report is `absent` there: it is neither passed nor
//! failed, is no difference by itself, and is listed apart.

mod html;
mod markdown;
#[cfg(test)]
mod tests;
mod text;

use std::path::PathBuf;

use serde::Serialize;

pub use self::html::html_comparison;
pub use self::markdown::markdown_comparison;
pub use self::text::text_comparison;
use super::{Document, Entry, Tally, Word};
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
    pub subjects: Vec<Subject>,
    /// What they came to, by area.
    pub areas: Vec<AreaRow>,
    /// The requirements that came to different things.
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
pub struct Subject {
    /// Its number, from 1, and the name of what was tested.
    pub label: String,
    /// The file of the report.
    pub file: PathBuf,
    /// The command under test.
    pub command: String,
    /// The version of the suite.
    pub suite: String,
    /// Whether it conforms.
    pub conformant: bool,
    /// Whether requirements of the tier `should` decided too.
    pub strict: bool,
    /// What its requirements came to.
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
    /// What its requirements came to.
    pub cells: Vec<Tally>,
}

/// A requirement that came to different things.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The requirement, as the first report has it.
    #[serde(flatten)]
    pub requirement: Listed,
    /// What it came to; `None` where it is absent.
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

/// What a requirement came to, and why.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Cell {
    /// What it came to.
    pub verdict: Word,
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
    /// Requirements that other reports have.
    pub ids: Vec<String>,
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
        let subjects: Vec<Subject> = subjects
            .map(|(index, (file, report))| Subject::of(index, file.clone(), report))
            .collect();
        let rows = rows(&documents);
        Ok(Self {
            version: VERSION,
            kind: first.kind,
            protocol: first.protocol,
            areas: areas(&documents),
            differences: rows.iter().filter_map(difference).collect(),
            broken_by_all: broken_by_all(&rows),
            absent: absent(&rows, &subjects),
            coverage: coverage(&documents),
            subjects,
        })
    }

    /// What a reader must know before trusting the comparison, in sentences.
    #[must_use]
    pub fn cautions(&self) -> Vec<String> {
        let mut cautions = Vec::new();
        let mixed = |of: fn(&Subject) -> String| {
            let mut values = self.subjects.iter().map(of);
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let each = |of: fn(&Subject) -> String| {
            let each = self.subjects.iter();
            let each = each.map(|subject| format!("{}: {}", subject.label, of(subject)));
            each.collect::<Vec<_>>().join(", ")
        };
        if mixed(|subject| subject.suite.clone()) {
            let versions = each(|subject| subject.suite.clone());
            cautions.push(format!(
                "The reports are of different versions of the suite ({versions})."
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
        for Absent { label, ids } in &self.absent {
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

impl Subject {
    fn of(index: usize, file: PathBuf, report: &Document) -> Self {
        Self {
            label: format!("{} {}", index + 1, report.name),
            file,
            command: report.command.clone(),
            suite: report.suite.clone(),
            conformant: report.conformant,
            strict: report.strict,
            all: Tally::of(&report.requirements),
            has_coverage: report.coverage.is_some(),
        }
    }

    /// `conformant` or `not conformant`.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        super::document::verdict(self.conformant)
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

/// `1 requirement`, `2 requirements`.
fn requirements(count: usize) -> String {
    match count {
        1 => "1 requirement".to_owned(),
        count => format!("{count} requirements"),
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
        cells: row.iter().map(|entry| entry.map(Cell::from)).collect(),
    })
}

fn broken_by_all(rows: &[Row<'_>]) -> Vec<String> {
    let fails = |entry: &Option<&Entry>| entry.is_some_and(|entry| entry.verdict == Word::Fail);
    let rows = rows.iter().filter(|row| row.iter().all(fails));
    rows.filter_map(|row| Some(row.first()?.as_ref()?.id.clone()))
        .collect()
}

fn absent(rows: &[Row<'_>], subjects: &[Subject]) -> Vec<Absent> {
    let lacks = |index: usize, row: &Row<'_>| -> Option<String> {
        let lacks = row.get(index).is_none_or(Option::is_none);
        let known = row.iter().flatten().next()?;
        lacks.then(|| known.id.clone())
    };
    let absent = subjects.iter().enumerate().map(|(index, subject)| Absent {
        label: subject.label.clone(),
        ids: rows.iter().filter_map(|row| lacks(index, row)).collect(),
    });
    absent.filter(|absent| !absent.ids.is_empty()).collect()
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
