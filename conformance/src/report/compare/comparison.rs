//! A comparison as data.

use std::path::PathBuf;

use serde::Serialize;

use super::change::Change;
use crate::report::document::{Conformity, Outcome};
use crate::report::tally::Tally;
use crate::requirements::Tier;
use crate::wire::Party;

/// The JSON Schema of a [`Comparison`] as `acp-conformance compare --json` writes it.
pub const SCHEMA: &str = include_str!("../../../schema/comparison.json");

/// The version of the format that [`Comparison`] is; it counts the changes.
pub(super) const VERSION: u32 = 1;

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
    /// How its verdict has changed.
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
    /// How the table has changed: [`Change::New`] where it is the first report, [`Change::Removed`] where
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
    /// Returns the requirements that pass in the first report, and fail in the last.
    pub fn regressions(&self) -> impl Iterator<Item = &Difference> {
        let differences = self.differences.iter();
        differences.filter(|difference| difference.change == Change::Regression)
    }
}
