//! How many requirements have which verdict.

use serde::{Deserialize, Serialize};

use super::document::{Entry, Outcome};

/// Numbers of requirements by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Obeyed.
    pub pass: usize,
    /// Broken.
    pub fail: usize,
    /// Of which nothing was seen that decides.
    pub inconclusive: usize,
    /// That depend on a step which is impossible.
    pub blocked: usize,
    /// About capabilities that are not declared.
    pub skip: usize,
    /// Not checked at all.
    pub excluded: usize,
}

impl Tally {
    /// Counts these.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut tally = Self::default();
        for entry in entries {
            let count = match entry.verdict {
                Outcome::Pass => &mut tally.pass,
                Outcome::Fail => &mut tally.fail,
                Outcome::Inconclusive => &mut tally.inconclusive,
                Outcome::Blocked => &mut tally.blocked,
                Outcome::Skip => &mut tally.skip,
                Outcome::Excluded => &mut tally.excluded,
            };
            *count += 1;
        }
        tally
    }

    /// `passed/decided`, or a dash when nothing was decided.
    #[must_use]
    pub fn ratio(&self) -> String {
        match self.pass + self.fail {
            0 => "-".to_owned(),
            decided => format!("{}/{decided}", self.pass),
        }
    }
}
