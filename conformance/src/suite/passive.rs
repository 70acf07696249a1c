//! What the rules over messages find in the recordings of a run.

use super::plan::Chosen;
use super::report::Verdict;
use super::violations::Violations;
use crate::harness::Recording;
use crate::passive::{Rule, RuleResult, State, View, Violation};
use crate::requirements::{self, Check};
use crate::wire::{FindingKind, Party, Version};

/// A rule over messages, the place of its row in `chosen` and what it has found.
struct RuleTally {
    row: usize,
    rule: Rule,
    /// What was not seen, if that leaves the row undecided: other rows have a check besides.
    missing: Option<&'static str>,
    seen: usize,
    violations: Violations,
    /// The first recording with a violation, by its place.
    broken_in: Option<usize>,
}

/// What the requirements that look at messages come to, by their place in `chosen`, with the place of
/// the first recording that breaks one.
/// `impossible` says why what was not seen could not be.
pub(super) fn verdicts(
    chosen: &[Chosen],
    version: Version,
    recordings: &[Recording],
    impossible: Option<&String>,
) -> Vec<Option<(Verdict, Option<usize>)>> {
    let mut tallies = tallies(chosen, version);
    for (place, recording) in recordings.iter().enumerate() {
        let mut state = State::whole();
        state.speak(version);
        for (index, entry) in recording.entries.iter().enumerate() {
            let said = entry.said(index);
            let view = View::new(&state, said);
            for tally in &mut tallies {
                match tally.rule {
                    Rule::Findings(kinds) => tally.free_of(recording, index, kinds),
                    rule => {
                        if let Some(rule) = rule.at_message(&view) {
                            tally.add(recording, index, rule(&view));
                        }
                    }
                }
            }
            state.take(said);
        }
        for tally in &mut tallies {
            if let Rule::End(rule) = tally.rule {
                tally.add(recording, 0, rule(&state));
            }
            if !tally.violations.is_empty() {
                tally.broken_in.get_or_insert(place);
            }
        }
    }
    let mut verdicts = vec![None; chosen.len()];
    let mut prompts = recordings
        .iter()
        .flat_map(|recording| recording.calls(Party::Client, "session/prompt"));
    let had_turn = prompts.next().is_some();
    for tally in tallies {
        if let Some(verdict) = verdicts.get_mut(tally.row) {
            let broken_in = tally.broken_in;
            let own = tally.verdict(impossible, had_turn);
            *verdict = own.map(|own| (own, broken_in)).or(verdict.take());
        }
    }
    verdicts
}

/// The rules of the rows, and those that rows with another check have besides.
fn tallies(chosen: &[Chosen], version: Version) -> Vec<RuleTally> {
    let also = requirements::live::rules(version);
    let rows = chosen.iter().enumerate();
    let rules = rows.flat_map(|(row, (_, requirement))| {
        let own = match requirement.check {
            Check::Watch { look, missing } => Some((look, Some(missing))),
            _ => None,
        };
        let also = also.iter().filter(|(id, _)| *id == requirement.id);
        let all = own.into_iter().chain(also.map(|(_, look)| (*look, None)));
        all.map(move |(rule, missing)| RuleTally {
            row,
            rule,
            missing,
            seen: 0,
            violations: Violations::default(),
            broken_in: None,
        })
    });
    rules.collect()
}

impl RuleTally {
    fn add(&mut self, recording: &Recording, index: usize, found: RuleResult) {
        match found {
            Ok(seen) => self.seen += seen,
            Err(violation) if violation.excuse.is_some() => self.seen += 1,
            Err(violation) => self.violations.add(recording, index, violation),
        }
    }

    /// A message of the agent must have none of these findings of its own that is not excused.
    fn free_of(&mut self, recording: &Recording, index: usize, kinds: &'static [FindingKind]) {
        let Some(entry) = recording.entries.get(index) else {
            return;
        };
        self.seen += usize::from(entry.could_have(kinds));
        for finding in entry.findings_by(Party::Agent, kinds) {
            let violation = Violation::new(finding.to_string()).at(&finding.pointer);
            self.violations.add(recording, index, violation);
        }
    }

    /// Returns the verdict; what an agent did not do although it had a turn does not apply to it.
    fn verdict(self, impossible: Option<&String>, had_turn: bool) -> Option<Verdict> {
        if let Some(failure) = self.violations.failure() {
            return Some(Err(failure).into());
        }
        let missing = self.missing?;
        Some(match (self.seen, impossible) {
            (0, Some(reason)) => Verdict::Blocked(reason.clone()),
            (0, None) if had_turn => Verdict::Skip(format!("not exercised: {missing}")),
            (0, None) => Verdict::Inconclusive(missing.to_owned()),
            _ => Verdict::Pass,
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
#[path = "passive_tests.rs"]
mod tests;
