//! Findings that the owner of an agent or a client knows and accepts, from a file.
//!
//! ```toml
//! [[known]]
//! id = "session-load.replays"
//! reason = "fixed in the next release"
//! ```
//!
//! An accepted finding stays in the report and does not decide the verdict. An entry whose
//! requirement passes, or does not exist, is stale and reported.

use std::path::Path;

use serde::Deserialize;

use super::document::{Document, Outcome, Stale};
use super::table;
use crate::wire::Party;
use crate::{Error, Result};

/// A finding that is known and accepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KnownFinding {
    /// The requirement's id.
    pub id: String,
    /// Why it is accepted.
    pub reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<KnownFinding>,
}

impl KnownFinding {
    /// Creates an accepted finding.
    #[must_use]
    pub fn new(id: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            reason: reason.into(),
        }
    }

    /// Reads accepted findings from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is no such table, gives no reason, or names an id twice.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
        parse(&text).map_err(|reason| Error::Known {
            path: path.to_owned(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<Vec<KnownFinding>, String> {
    let File { known } = basic_toml::from_str(text).map_err(|error| error.to_string())?;
    for (index, entry) in known.iter().enumerate() {
        if entry.reason.trim().is_empty() {
            return Err(format!(
                "{} has no reason; say why it is accepted",
                entry.id
            ));
        }
        if known.iter().take(index).any(|other| other.id == entry.id) {
            return Err(format!(
                "{} stands twice; remove one of the entries",
                entry.id
            ));
        }
    }
    Ok(known)
}

impl Document {
    /// Accepts these findings: they do not decide the verdict any more. Entries that are stale
    /// become [`Document::stale`].
    pub fn accept(&mut self, known: &[KnownFinding]) {
        for finding in known {
            let rows = self.requirements.iter_mut();
            let mut rows = rows.filter(|row| row.id == finding.id);
            let reason = match rows.next() {
                Some(row) if row.verdict == Outcome::Fail => {
                    row.accepted = Some(finding.reason.clone());
                    continue;
                }
                Some(row) if row.verdict == Outcome::Pass => "it passes now; remove the entry",
                None if !exists(&finding.id, self.kind) => "no requirement has this id",
                // Not judged in this run.
                _ => continue,
            };
            self.stale.push(Stale {
                id: finding.id.clone(),
                reason: reason.to_owned(),
            });
        }
        self.decide();
    }
}

/// Whether a requirement of either version has this id.
fn exists(id: &str, kind: Party) -> bool {
    let rows = table::all();
    rows.iter().any(|row| row.id == id && row.side == kind)
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::super::{Conformity, junit, text};
    use super::*;
    use crate::requirements::Tier;

    #[test]
    fn an_accepted_finding_does_not_decide_and_stays_in_the_report() {
        let rows = [
            ("plan.entries", Tier::Must, Outcome::Fail),
            ("modes.set", Tier::Must, Outcome::Pass),
            ("modes.kept", Tier::Must, Outcome::Pass),
        ];
        let mut report = report("a", &rows);
        assert_eq!(report.verdict, Conformity::NotConformant);
        let known = [
            KnownFinding::new("plan.entries", "known for long"),
            KnownFinding::new("modes.set", "was broken"),
            KnownFinding::new("no.such", "a slip"),
            // Not in this run.
            KnownFinding::new("cancellation.stop-reason", "left out"),
        ];
        report.accept(&known);
        assert_eq!(report.verdict, Conformity::Conformant);
        let stale: Vec<_> = report.stale.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(stale, ["modes.set", "no.such"]);
        let out = text(&report).unwrap();
        for what in [
            "ACCEPTED plan.entries (must): it was unkind",
            "  known known for long",
            "modes.set: it passes now",
            "no.such: no requirement has this id",
            "; 1 accepted",
        ] {
            assert!(out.contains(what), "{what}: {out}");
        }
        let xml = junit(&report).unwrap();
        assert!(xml.contains("failures=\"0\""), "{xml}");
        assert!(
            xml.contains("message=\"accepted, must: known for long: "),
            "{xml}"
        );
    }

    #[test]
    fn a_file_says_which_and_why() {
        let known = parse("[[known]]\nid = \"a.b\"\nreason = \"c\"").unwrap();
        assert_eq!(known, [KnownFinding::new("a.b", "c")]);
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("[[known]]\nid = \"a.b\"").contains("reason"));
        assert!(error("[[known]]\nid = \"a.b\"\nreason = \" \"").contains("a.b has no reason"));
        assert!(error("[[knwon]]\nid = \"a\"\nreason = \"c\"").contains("knwon"));
        let twice = "[[known]]\nid = \"a\"\nreason = \"c\"\n".repeat(2);
        assert!(error(&twice).contains("a stands twice"));
    }
}
