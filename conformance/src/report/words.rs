//! Sentences about a report that stand in several formats.

use super::document::{Conformity, Document, Outcome};
use super::table;
use super::tally::Tally;
use super::verdict::MOST_UNDECIDED;
use crate::requirements::Tier;
use crate::wire::Party;

/// How many requirements that were not exercised are named beside the verdict.
const NAMED: usize = 12;

impl Document {
    /// Returns why the run is incomplete, if it is.
    #[must_use]
    pub fn why_incomplete(&self) -> Option<String> {
        if self.verdict != Conformity::Incomplete {
            return None;
        }
        if self.interrupted {
            let why = "the run was interrupted; the report has what was judged before";
            return Some(why.to_owned());
        }
        let (judged, undecided) = self.decided();
        let all = judged + undecided;
        Some(format!(
            "{undecided} of {all} requirements that decide were not judged; \
             at most {MOST_UNDECIDED} % may be"
        ))
    }

    /// The counts of the verdicts, in words.
    #[must_use]
    pub fn summary(&self) -> String {
        let broken = |tiers: &[Tier]| {
            let failed = self.with(Outcome::Fail);
            let failed = failed.filter(|entry| entry.accepted.is_none());
            failed.filter(|entry| tiers.contains(&entry.tier)).count()
        };
        let all = Tally::of(&self.requirements);
        let accepted = self.requirements.iter();
        let accepted = accepted.filter(|entry| entry.accepted.is_some()).count();
        let more = |count: usize, before: &str, after: &str| match count {
            0 => String::new(),
            count => format!("{before}{count}{after}"),
        };
        let left_out = match self.left_out.as_slice() {
            [] => String::new(),
            names => format!("; left out: {}", names.join(", ")),
        };
        [
            format!("{} passed; failed: ", all.pass),
            format!("{} MUST, ", broken(&[Tier::Must, Tier::Capability])),
            format!("{} derived, ", broken(&[Tier::Derived])),
            format!("{} SHOULD, ", broken(&[Tier::Should])),
            format!("{} info; ", broken(&[Tier::Info])),
            format!("{} inconclusive, {} skipped", all.inconclusive, all.skip),
            more(
                self.not_exercised().len(),
                " (",
                " that decide not exercised)",
            ),
            more(all.blocked, ", ", " blocked"),
            more(accepted, "; ", " accepted"),
            left_out,
        ]
        .concat()
    }

    /// What a reader needs to repeat the run or to doubt it: names and values, in the order of every
    /// format.
    #[must_use]
    pub fn provenance(&self) -> Vec<(&'static str, String)> {
        let prompts = match self.kind {
            Party::Agent => self.prompts.to_string(),
            Party::Client => String::new(),
        };
        let mut provenance = vec![
            ("protocol", format!("v{}", self.protocol)),
            ("specification", self.specification.clone()),
            ("suite", table::suite(&self.suite, &self.table)),
            (self.kind.as_str(), self.name.clone()),
            ("began", self.date.clone()),
            ("duration", format!("{:.1} s", self.seconds)),
            ("prompts", prompts),
            ("not run by --quick", self.quick.clone().unwrap_or_default()),
            ("not exercised", self.names_not_exercised()),
        ];
        // Reports of older suites lack some.
        provenance.retain(|(_, value)| !value.is_empty());
        provenance
    }

    /// The requirements that the verdict says nothing of, in words; empty if there are none.
    fn names_not_exercised(&self) -> String {
        let open = self.not_exercised();
        let ids: Vec<&str> = open.iter().take(NAMED).map(|it| it.id.as_str()).collect();
        let (count, ids) = (open.len(), ids.join(", "));
        match count {
            0 => String::new(),
            1..=NAMED => format!("{count} requirements that decide: {ids}"),
            _ => format!(
                "{count} requirements that decide: {ids} and {} others",
                count - NAMED
            ),
        }
    }
}
