//! The diagnostic of a finding: the row of the table that it breaks, and its level.
//!
//! The row is the one whose check looks for such findings, so that a recording, live traffic and a
//! run of the suite are judged by one table. The level is that of the row's tier.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Serialize;

use crate::clients;
use crate::passive::Rule;
use crate::requirements::{self, Check, Tier};
use crate::wire::{Finding, FindingKind, Party, Version};

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Never decides: the tier `info`, and what is excused.
    Note,
    /// Decides when asked: the tiers `derived` and `should`.
    Warning,
    /// Decides: the tiers `must` and `capability`.
    Error,
}

/// A finding with the row that it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How severe it is.
    pub level: Level,
    /// The id of the requirement; none for what is about the recording, not about the protocol.
    pub requirement: Option<&'static str>,
    /// What is wrong.
    #[serde(flatten)]
    pub finding: Finding,
}

impl From<Tier> for Level {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Must | Tier::Capability => Self::Error,
            Tier::Derived | Tier::Should => Self::Warning,
            Tier::Info => Self::Note,
        }
    }
}

impl Diagnostic {
    /// Looks up the row that a finding breaks in a version of the protocol.
    #[must_use]
    pub fn new(version: Version, finding: Finding) -> Self {
        let row = Rows::of(version).find(finding.rule, finding.by);
        let level = match (row, finding.rule) {
            _ if finding.excuse.is_some() => Level::Note,
            (Some((_, tier)), _) => tier.into(),
            (None, FindingKind::Record) => Level::Error,
            (None, _) => Level::Warning,
        };
        Self {
            level,
            requirement: row.map(|(id, _)| id),
            finding,
        }
    }

    /// The diagnostic of a finding about a protocol that has a schema and no requirements.
    #[must_use]
    pub(super) fn of_schema(finding: Finding) -> Self {
        let level = match finding.rule {
            _ if finding.excuse.is_some() => Level::Note,
            FindingKind::TooLong | FindingKind::Lost => Level::Warning,
            _ => Level::Error,
        };
        Self {
            level,
            requirement: None,
            finding,
        }
    }
}

/// The rows of a version that findings break.
struct Rows {
    /// By the kind of the finding and its writer.
    kinds: HashMap<(FindingKind, Party), &'static str>,
    tiers: HashMap<&'static str, Tier>,
}

impl Rows {
    fn of(version: Version) -> &'static Self {
        static V1: LazyLock<Rows> = LazyLock::new(|| Rows::read(Version::V1));
        static V2: LazyLock<Rows> = LazyLock::new(|| Rows::read(Version::V2));
        match version {
            Version::V1 => &V1,
            Version::V2 => &V2,
        }
    }

    fn read(version: Version) -> Self {
        let agents = || requirements::of(version).map(|(_, row)| row);
        let clients = clients::of(version).map(|row| (row.id, row.tier));
        let mut kinds = HashMap::new();
        let mut add = |by, id, look| {
            if let Rule::Findings(all) = look {
                for kind in all {
                    kinds.entry((*kind, by)).or_insert(id);
                }
            }
        };
        for row in agents() {
            if let Check::Watch { look, .. } = row.check {
                add(Party::Agent, row.id, look);
            }
        }
        for (id, look) in requirements::live::rules(version) {
            add(Party::Agent, *id, *look);
        }
        for (id, look, _) in clients::rules::of(version) {
            add(Party::Client, *id, *look);
        }
        Self {
            kinds,
            tiers: agents()
                .map(|row| (row.id, row.tier))
                .chain(clients)
                .collect(),
        }
    }

    /// The row that such a finding breaks; of a writer who is not known, the agent's.
    fn find(&self, kind: FindingKind, by: Option<Party>) -> Option<(&'static str, Tier)> {
        let id = match kind {
            FindingKind::Requirement(id) => id,
            kind => self.kinds.get(&(kind, by.unwrap_or(Party::Agent)))?,
        };
        Some((id, *self.tiers.get(id)?))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The level, the requirement, the writer, the method, the place and what is wrong.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.requirement.unwrap_or(self.finding.rule.as_str());
        write!(f, "{}[{name}]", self.level)?;
        match self.finding.by {
            Some(by) => write!(f, " {by}: {}", self.finding),
            None => write!(f, ": {}", self.finding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: FindingKind, by: Option<Party>) -> Finding {
        Finding {
            place: 7,
            rule,
            by,
            method: Some("session/update".into()),
            pointer: "/params/update".into(),
            message: "missing `content`".into(),
            excuse: None,
        }
    }

    #[test]
    fn levels_are_ordered_by_severity() {
        assert!(Level::Note < Level::Warning && Level::Warning < Level::Error);
    }

    #[test]
    fn a_diagnostic_names_its_requirement() {
        let found = finding(FindingKind::Schema, Some(Party::Agent));
        assert_eq!(
            Diagnostic::new(Version::V1, found).to_string(),
            "error[jsonrpc.schema] agent: session/update at /params/update: missing `content`"
        );
        let found = finding(FindingKind::Lost, None);
        assert_eq!(
            Diagnostic::new(Version::V1, found).to_string(),
            "warning[lost]: session/update at /params/update: missing `content`"
        );
    }

    /// What is about the recording itself has no row.
    #[test]
    fn every_kind_of_finding_has_a_row_in_every_version_and_for_both_sides() {
        for version in [Version::V1, Version::V2] {
            for kind in FindingKind::ALL {
                for by in [Party::Agent, Party::Client] {
                    let found = Diagnostic::new(version, finding(kind, Some(by)));
                    let about_the_file = matches!(kind, FindingKind::Record | FindingKind::Lost);
                    // Agents alone choose versions, and send updates.
                    let agents_only = by == Party::Client
                        && matches!(
                            kind,
                            FindingKind::LateUpdate | FindingKind::UnsupportedVersion
                        );
                    let v2_only = version == Version::V1 && kind == FindingKind::ReservedValue;
                    assert_eq!(
                        found.requirement.is_none(),
                        about_the_file || agents_only || v2_only,
                        "{kind:?} of the {by} in version {}",
                        version.as_str()
                    );
                }
            }
        }
    }

    #[test]
    fn every_rule_over_sequences_has_a_row() {
        for version in [Version::V1, Version::V2] {
            for id in super::super::live::ids(version) {
                let found = finding(FindingKind::Requirement(id), None);
                let found = Diagnostic::new(version, found);
                assert_eq!(found.requirement, Some(id));
            }
        }
    }
}
