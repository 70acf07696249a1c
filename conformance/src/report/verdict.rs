//! What follows from the verdicts of a report's requirements.

use super::document::{Conformity, Document, Entry, Outcome};
use super::tally::Tally;

/// How many percent of the requirements that decide may be inconclusive or blocked in a run that is
/// not incomplete. In a run of chosen requirements only those that are blocked count: whoever chooses a
/// few knows what is missing.
pub const MOST_UNDECIDED: usize = 20;

impl Document {
    /// Derives the verdict from the requirements.
    pub(super) fn decide(&mut self) {
        let (judged, undecided) = self.decided();
        let mut entries = self.requirements.iter();
        self.verdict = if self.interrupted {
            Conformity::Incomplete
        } else if entries.any(|entry| entry.fails(self.strict)) {
            Conformity::NotConformant
        } else if undecided * 100 > (judged + undecided) * MOST_UNDECIDED {
            Conformity::Incomplete
        } else {
            Conformity::Conformant
        };
        self.conformant = self.verdict == Conformity::Conformant;
    }

    /// Returns how many of the requirements that decide were judged, and how many of them are
    /// inconclusive or blocked.
    #[must_use]
    pub fn decided(&self) -> (usize, usize) {
        let deciding = self.requirements.iter();
        let tally = Tally::of(deciding.filter(|entry| entry.tier.decides(self.strict)));
        let inconclusive = match self.narrowed {
            true => 0,
            false => tally.inconclusive,
        };
        (tally.pass + tally.fail, inconclusive + tally.blocked)
    }

    /// Requirements with this verdict.
    pub fn with(&self, word: Outcome) -> impl Iterator<Item = &Entry> {
        let entries = self.requirements.iter();
        entries.filter(move |entry| entry.verdict == word)
    }

    /// What is broken; what weighs most comes first.
    #[must_use]
    pub fn failures(&self) -> Vec<&Entry> {
        let mut failures: Vec<_> = self.with(Outcome::Fail).collect();
        failures.sort_by_key(|entry| entry.tier);
        failures
    }

    /// Requirements that decide, apply to what is declared, and were not exercised in this run: the verdict
    /// says nothing of them.
    #[must_use]
    pub fn not_exercised(&self) -> Vec<&Entry> {
        let skipped = self.with(Outcome::Skip);
        let skipped = skipped.filter(|entry| entry.tier.decides(self.strict));
        skipped.filter(|entry| !entry.is_undeclared()).collect()
    }
}

impl Entry {
    /// Whether it is broken, not accepted, and decides the verdict.
    #[must_use]
    pub fn fails(&self, strict: bool) -> bool {
        self.verdict == Outcome::Fail && self.accepted.is_none() && self.tier.decides(strict)
    }

    /// Whether it is about a capability that is not declared.
    pub(super) fn is_undeclared(&self) -> bool {
        self.why().contains("does not declare")
    }
}
