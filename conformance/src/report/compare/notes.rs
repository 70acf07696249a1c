//! Sentences about a comparison that stand in several formats.

use super::change::Change;
use super::comparison::{Absent, Comparison, Target};
use crate::report::render::requirements;
use crate::report::table;
use crate::wire::Party;

impl Comparison {
    /// What a reader must know before trusting the comparison, in sentences.
    #[must_use]
    pub fn cautions(&self) -> Vec<String> {
        let strict = |subject: &Target| match subject.strict {
            true => "strict".to_owned(),
            false => "not strict".to_owned(),
        };
        let mut cautions = Vec::new();
        cautions.extend(self.unlike(
            "The reports are of different versions of the suite",
            Target::suite,
        ));
        cautions.extend(self.unlike(
            "The requirements quote different revisions of the specification",
            |subject| subject.specification.clone(),
        ));
        cautions.extend(self.unlike("The verdicts were not reached alike", strict));
        cautions.extend(self.absent.iter().map(|Absent { label, ids, .. }| {
            let count = requirements(ids.len());
            format!("{label} lacks {count}, left out of its run or unknown to its suite.")
        }));
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

    /// Returns a sentence with what each subject has, if they differ in it.
    fn unlike(&self, sentence: &str, of: impl Fn(&Target) -> String) -> Option<String> {
        let values: Vec<_> = self.subjects.iter().map(&of).collect();
        let is_mixed = values.iter().any(|value| Some(value) != values.first());
        let each = self.subjects.iter().zip(&values);
        let each = each.map(|(subject, value)| format!("{}: {value}", subject.label));
        let each = each.collect::<Vec<_>>().join(", ");
        is_mixed.then(|| format!("{sentence} ({each})."))
    }
}

impl Target {
    /// Returns the version of the suite, and the hash of its table if the report has it.
    fn suite(&self) -> String {
        let suite = table::suite(&self.suite, &self.table);
        suite.trim_start_matches("acp-conformance ").to_owned()
    }

    /// Returns where the report comes from, after its label and verdict.
    pub(super) fn provenance(&self) -> String {
        let file = self.file.display();
        let (suite, prompts) = (&self.suite, self.prompts);
        let began = match self.date.as_str() {
            "" => String::new(),
            date => format!(", began {date}"),
        };
        format!("{file}: acp-conformance {suite}{began}, {prompts} prompts")
    }
}

impl Absent {
    /// Returns the heading above its requirements.
    pub(super) fn title(&self) -> String {
        let what = match self.change {
            Change::New | Change::Removed => self.change.title(0),
            _ => "Not in the report on".to_owned(),
        };
        format!("{what} {}", self.label)
    }

    /// Returns its requirements; one that fails says so.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.ids.iter().map(|id| match self.failing.contains(id) {
            true => format!("{id} (fail)"),
            false => id.clone(),
        })
    }
}
