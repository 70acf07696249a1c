//! A report as data: the result of a run against an agent or a client.
//!
//! Every format is made from a [`Document`]. It is what `--json` writes, as
//! `schema/report.json` describes it, and what `compare` reads back.

use serde::{Deserialize, Serialize};

use crate::requirements::Tier;
use crate::suite::{CancelTimes, Coverage, Messages, RootCause};
use crate::wire::Party;

/// The version of the format that [`Document`] is; it counts the changes.
pub const VERSION: u32 = 3;

/// The JSON Schema of a [`Document`].
pub const SCHEMA: &str = include_str!("../../schema/report.json");

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// The version of the format.
    pub version: u32,
    /// Who was tested.
    pub kind: Party,
    /// The version of the suite that tested it.
    pub suite: String,
    /// The first ten digits of the SHA-256 of the suite's table of requirements; empty in reports of older
    /// suites. A build without the feature `remote` has a smaller table.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub table: String,
    /// The revision of the specification's pages and the hash of its schemas that the requirements quote,
    /// with their dates.
    #[serde(default)]
    pub specification: String,
    /// When the run began, in UTC, as RFC 3339 has it; empty in reports of older suites.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The version of the protocol.
    pub protocol: u64,
    /// The command under test, as a shell takes it; empty for one in this process.
    pub command: String,
    /// How the run is repeated; absent when a test has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The name and version of what was tested, as it reports them.
    pub name: String,
    /// The verdict of the run.
    pub verdict: Conformity,
    /// Whether the verdict is [`Conformity::Conformant`].
    pub conformant: bool,
    /// Whether requirements of the tiers `derived` and `should` decide too.
    pub strict: bool,
    /// How long the run took.
    pub seconds: f64,
    /// How much was said.
    pub messages: Messages,
    /// How many prompts an agent was sent.
    #[serde(default)]
    pub prompts: usize,
    /// How long turns went on after `session/cancel`; absent if none was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_times: Option<CancelTimes>,
    /// The step that failed, and blocks what depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<RootCause>,
    /// Whether the run was interrupted by a signal. Then it is [`Conformity::Incomplete`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What a quick run has left out, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<String>,
    /// Accepted findings that are none any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
    /// Whether `--only` or `--skip` narrowed the run; then nothing inconclusive makes it
    /// [`Conformity::Incomplete`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub narrowed: bool,
    /// The words of the prompts that the user, or the agent, has set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Requirements that were to be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The folder of the transcripts, as the command line names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcripts: Option<String>,
    /// In the order of the table.
    pub requirements: Vec<Entry>,
    /// What of the protocol was exercised; of whole runs against agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

/// An accepted finding that is none any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// The requirement's id.
    pub id: String,
    /// Why the entry is stale.
    pub reason: String,
}

/// A requirement and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// Its area; for a client the scenario that was played.
    pub area: String,
    /// How much it weighs.
    pub tier: Tier,
    /// The sentence of the specification, or the part of it that matters.
    pub quote: String,
    /// Where the sentence stands.
    pub cite: String,
    /// How it follows from the sentence; absent unless the tier is `derived`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What its check sends and what must come; absent if there is no check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Its verdict.
    pub verdict: Outcome,
    /// Why; absent when it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why a failure is accepted; such a one does not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// The message that led to a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What came instead of what should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<String>,
    /// How to run this one alone; absent for one that passed or did not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Files with the traffic of its check, in the folder of the transcripts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcripts: Vec<String>,
    /// How long the check took, where it is one of its own.
    #[serde(default)]
    pub seconds: f64,
    /// How many prompts the check sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prompts: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The verdict of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conformity {
    /// No requirement that decides is broken, and enough of them were judged.
    #[serde(rename = "conformant")]
    Conformant,
    /// A requirement that decides is broken.
    #[serde(rename = "not conformant")]
    NotConformant,
    /// None is broken, but too few of them were judged.
    #[serde(rename = "incomplete")]
    Incomplete,
}

/// A verdict's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Obeyed, as far as the check can tell.
    Pass,
    /// Broken.
    Fail,
    /// Nothing was seen that decides.
    Inconclusive,
    /// Depends on a step that is impossible with what was tested.
    Blocked,
    /// About a capability that is not declared.
    Skip,
    /// Not checked at all.
    Excluded,
}

impl Document {
    /// The areas with their requirements, in the order of the report.
    #[must_use]
    pub fn areas(&self) -> Vec<(&str, Vec<&Entry>)> {
        let mut areas: Vec<(&str, Vec<&Entry>)> = Vec::new();
        for entry in &self.requirements {
            match areas.iter_mut().find(|(area, _)| *area == entry.area) {
                Some((_, entries)) => entries.push(entry),
                None => areas.push((&entry.area, vec![entry])),
            }
        }
        areas
    }
}

impl Entry {
    /// The reason of its verdict; empty when it passed.
    #[must_use]
    pub fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// What was sent and what came, as far as either is known.
    pub fn evidence(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let said = [("sent", &self.sent), ("came", &self.came)];
        said.into_iter()
            .filter_map(|(name, said)| Some((name, said.as_deref()?.trim_end())))
    }
}

impl Conformity {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conformant => "conformant",
            Self::NotConformant => "not conformant",
            Self::Incomplete => "incomplete",
        }
    }
}
