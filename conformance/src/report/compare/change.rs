//! What became of a requirement from the first report to the last.

use serde::Serialize;

use crate::report::document::{Entry, Outcome};

/// What became of a requirement, in the order in which a comparison shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It passes in the first report, and fails in the last, where it is not accepted.
    Regression,
    /// It fails in the first report, and passes in the last.
    Fixed,
    /// It changed otherwise.
    Other,
    /// The first report lacks it.
    New,
    /// The last report lacks it.
    Removed,
}

impl Change {
    /// Returns the change between the first and the last report that have the requirement.
    pub(super) fn between(first: &Entry, last: &Entry) -> Self {
        match (first.verdict, last.verdict) {
            (Outcome::Pass, Outcome::Fail) if last.accepted.is_none() => Self::Regression,
            (Outcome::Fail, Outcome::Pass) => Self::Fixed,
            _ => Self::Other,
        }
    }

    /// Returns what a list of such changes is called; `last` is the number of the last report.
    pub(super) fn title(self, last: usize) -> String {
        match self {
            Self::Regression => format!("Regressions: pass in 1, fail in {last}"),
            Self::Fixed => format!("Fixed: fail in 1, pass in {last}"),
            Self::Other => "Otherwise different".to_owned(),
            Self::New => "New, not in the report on".to_owned(),
            Self::Removed => "Removed, not in the report on".to_owned(),
        }
    }
}
