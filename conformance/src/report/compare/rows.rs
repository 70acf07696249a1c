//! A comparison from reports.

use std::path::PathBuf;

use super::change::Change;
use super::comparison::{
    Absent, AreaRow, Cell, Comparison, Difference, Listed, Target, UseRow, VERSION,
};
use crate::report::document::{Document, Entry, Outcome};
use crate::report::tally::Tally;
use crate::suite::Coverage;
use crate::{Error, Result};

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
}

impl Target {
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
pub(super) fn merged<'a>(
    documents: &[&'a Document],
    name: fn(&'a Entry) -> &'a str,
) -> Vec<&'a str> {
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
    let present: Vec<&Entry> = row.iter().flatten().copied().collect();
    let (first, last) = (present.first()?, present.last()?);
    if present.iter().all(|entry| entry.verdict == first.verdict) {
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
        change: Change::between(first, last),
        cells: row.iter().map(|entry| entry.map(cell)).collect(),
    })
}

fn cell(entry: &Entry) -> Cell {
    Cell {
        verdict: entry.verdict,
        reason: entry.reason.clone(),
    }
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
