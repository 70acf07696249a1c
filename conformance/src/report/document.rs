//! A report as data: the result of a run against an agent or a client.
//!
//! Every format is made from a [`Document`]. It is what `--json` writes, as
//! `schema/report.json` describes it, and what `compare` reads back.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Stale, Tally, date, table};
use crate::clients;
use crate::requirements::{Choice, Tier};
use crate::specification::{self, PINNED};
use crate::suite::{self, CancelTimes, Coverage, RootCause, Verdict};
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

/// How many messages a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Those of the agent.
    pub agent: usize,
    /// Those of the client.
    pub client: usize,
    /// Those of who was tested that the schema or the envelope forbids.
    pub invalid: usize,
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

/// How many percent of the requirements that decide may be inconclusive or blocked in a run that is
/// not incomplete. In a run of chosen requirements only those that are blocked count: whoever chooses a
/// few knows what is missing.
pub const MOST_UNDECIDED: usize = 20;

/// How many requirements that were not exercised are named beside the verdict.
const NAMED: usize = 12;

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

/// What a report has besides the result of the run.
#[derive(Clone, Copy, Debug)]
pub struct RunInfo<'a> {
    /// Whether requirements of the tier `should` decide too.
    pub strict: bool,
    /// Which requirements were run.
    pub choice: &'a Choice,
    /// How it is run again.
    pub again: Rerun<'a>,
}

/// How a run, or a part of it, is repeated.
#[derive(Clone, Copy, Debug)]
pub enum Rerun<'a> {
    /// By a command.
    Command {
        /// The first words of it.
        start: &'a str,
        /// What follows the choice of requirements: options, and the command under test.
        rest: &'a str,
    },
    /// By the test that has called.
    Test,
}

impl Rerun<'_> {
    /// How the requirement with this id is run alone.
    fn one(&self, id: &str) -> String {
        match self {
            Self::Command { start, rest } => format!("{start} --only {id}{rest}"),
            Self::Test => format!("this test with .only([\"{id}\"])"),
        }
    }

    /// How all of it is run again.
    fn all(&self, choice: &Choice) -> Option<String> {
        let Self::Command { start, rest } = self else {
            return None;
        };
        let option = |name: &'static str| move |value: &String| format!(" {name} {value}");
        let only = choice.only.iter().map(option("--only"));
        let skip = choice.skip.iter().map(option("--skip"));
        let options: String = only.chain(skip).collect();
        Some(format!("{start}{options}{rest}"))
    }
}

impl Document {
    /// The report on an agent.
    #[must_use]
    pub fn of_agent(report: &suite::Report, setting: &RunInfo<'_>) -> Self {
        let entries = report.rows.iter().map(|row| {
            let requirement = row.requirement;
            let mut entry = Entry::new(requirement.id, &row.verdict, setting);
            row.area.name.clone_into(&mut entry.area);
            entry.tier = requirement.tier;
            entry.source(requirement.quote, requirement.cite, requirement.because);
            entry.test = requirement.test.map(str::to_owned);
            entry.seconds = seconds(row.took);
            entry.prompts = row.prompts;
            entry.transcripts.clone_from(&row.transcripts);
            entry
        });
        let messages = Messages {
            agent: report.from_agent,
            client: report.from_client,
            invalid: report.invalid,
        };
        let mut document = Self {
            command: report.command.clone(),
            name: report.agent.clone(),
            protocol: report.protocol,
            seconds: seconds(report.took),
            date: date::began(report.took),
            messages,
            coverage: report.coverage.clone(),
            prompts: report.prompts,
            cancel_times: report.cancel_times,
            root_cause: report.root_cause.clone(),
            interrupted: report.interrupted,
            quick: report.quick.clone(),
            words: report.words.clone(),
            ..Self::new(Party::Agent, entries.collect(), setting)
        };
        document.decide();
        document
    }

    /// The report on a client.
    #[must_use]
    pub fn of_client(report: &clients::Report, setting: &RunInfo<'_>) -> Self {
        let entries = report.rows.iter().map(|(row, verdict)| {
            let mut entry = Entry::new(row.id, verdict, setting);
            row.scenario.clone_into(&mut entry.area);
            entry.tier = row.tier;
            entry.source(row.quote, row.cite, row.because);
            entry.test = row.test.map(str::to_owned);
            let files = report.transcripts.iter();
            let files = files.filter(|(scenario, _)| *scenario == row.scenario);
            entry.transcripts = files.map(|(_, file)| file.clone()).collect();
            entry
        });
        let messages = Messages {
            agent: report.from_agent,
            client: report.from_client,
            invalid: report.invalid,
        };
        Self {
            command: report.command.clone(),
            name: report.client.clone(),
            seconds: seconds(report.took),
            date: date::began(report.took),
            protocol: report.protocol.number(),
            messages,
            ..Self::new(Party::Client, entries.collect(), setting)
        }
    }

    fn new(kind: Party, requirements: Vec<Entry>, setting: &RunInfo<'_>) -> Self {
        let mut document = Self {
            version: VERSION,
            kind,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            table: table::hash(&table::all()),
            specification: PINNED.name(),
            date: String::new(),
            protocol: 1,
            command: String::new(),
            again: setting.again.all(setting.choice),
            name: String::new(),
            verdict: Conformity::Conformant,
            conformant: true,
            strict: setting.strict,
            seconds: 0.0,
            messages: Messages::default(),
            prompts: 0,
            cancel_times: None,
            root_cause: None,
            interrupted: false,
            quick: None,
            words: Vec::new(),
            stale: Vec::new(),
            narrowed: setting.choice.is_narrowed(),
            left_out: setting.choice.skip.clone(),
            transcripts: None,
            requirements,
            coverage: None,
        };
        document.decide();
        document
    }

    /// Derives the verdict from the requirements.
    pub(super) fn decide(&mut self) {
        let (judged, undecided) = self.decided();
        self.verdict = if self.interrupted {
            Conformity::Incomplete
        } else if self
            .requirements
            .iter()
            .any(|entry| entry.fails(self.strict))
        {
            Conformity::NotConformant
        } else if undecided * 100 > (judged + undecided) * MOST_UNDECIDED {
            Conformity::Incomplete
        } else {
            Conformity::Conformant
        };
        self.conformant = self.verdict == Conformity::Conformant;
    }

    /// Returns why the run is incomplete, if it is.
    #[must_use]
    pub fn why_incomplete(&self) -> Option<String> {
        let (judged, undecided) = self.decided();
        let all = judged + undecided;
        match self.verdict {
            Conformity::Incomplete if self.interrupted => {
                Some("the run was interrupted; the report has what was judged before".to_owned())
            }
            Conformity::Incomplete => Some(format!(
                "{undecided} of {all} requirements that decide were not judged; \
                 at most {MOST_UNDECIDED} % may be"
            )),
            Conformity::Conformant | Conformity::NotConformant => None,
        }
    }

    /// Returns how many of the requirements that decide were judged, and how many of them are
    /// inconclusive or blocked.
    #[must_use]
    pub fn decided(&self) -> (usize, usize) {
        let deciding = self.requirements.iter();
        let deciding = deciding.filter(|entry| entry.tier.decides(self.strict));
        let tally = Tally::of(deciding);
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
        let more = [(all.blocked, ", ", "blocked"), (accepted, "; ", "accepted")];
        let more = more.into_iter().filter(|(count, ..)| *count > 0);
        let more: String = more
            .map(|(count, before, word)| format!("{before}{count} {word}"))
            .collect();
        let open = match self.not_exercised().len() {
            0 => String::new(),
            count => format!(" ({count} that decide not exercised)"),
        };
        let left_out = match self.left_out.as_slice() {
            [] => String::new(),
            names => format!("; left out: {}", names.join(", ")),
        };
        format!(
            "{} passed; failed: {} MUST, {} derived, {} SHOULD, {} info; \
             {} inconclusive, {} skipped{open}{more}{left_out}",
            all.pass,
            broken(&[Tier::Must, Tier::Capability]),
            broken(&[Tier::Derived]),
            broken(&[Tier::Should]),
            broken(&[Tier::Info]),
            all.inconclusive,
            all.skip
        )
    }

    /// What a reader needs to repeat the run or to doubt it: names and values, in the order of every
    /// format.
    #[must_use]
    pub fn provenance(&self) -> Vec<(&'static str, String)> {
        let mut provenance = vec![
            ("protocol", format!("v{}", self.protocol)),
            ("specification", self.specification.clone()),
            ("suite", table::suite(&self.suite, &self.table)),
            (self.kind.as_str(), self.name.clone()),
            ("began", self.date.clone()),
            ("duration", format!("{:.1} s", self.seconds)),
        ];
        if self.kind == Party::Agent {
            provenance.push(("prompts", self.prompts.to_string()));
        }
        if let Some(left_out) = &self.quick {
            provenance.push(("not run by --quick", left_out.clone()));
        }
        let open = self.not_exercised();
        if !open.is_empty() {
            let ids: Vec<&str> = open.iter().take(NAMED).map(|it| it.id.as_str()).collect();
            let more = match open.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} others"),
            };
            let text = format!(
                "{} requirements that decide: {}{more}",
                open.len(),
                ids.join(", ")
            );
            provenance.push(("not exercised", text));
        }
        // Reports of older suites lack some.
        provenance.retain(|(_, value)| !value.is_empty());
        provenance
    }

    /// The command under test, in words when it is none.
    #[must_use]
    pub fn command_line(&self) -> &str {
        if self.command.is_empty() {
            "within this process"
        } else {
            &self.command
        }
    }
}

impl Entry {
    fn new(id: &str, verdict: &Verdict, setting: &RunInfo<'_>) -> Self {
        let mut entry = Self {
            id: id.to_owned(),
            area: String::new(),
            tier: Tier::Info,
            quote: String::new(),
            cite: String::new(),
            because: None,
            test: None,
            verdict: Outcome::Pass,
            reason: None,
            accepted: None,
            sent: None,
            came: None,
            again: None,
            transcripts: Vec::new(),
            seconds: 0.0,
            prompts: 0,
        };
        let again = setting.again.one(id);
        match verdict {
            Verdict::Pass => {}
            Verdict::Fail(failure) => {
                entry.verdict = Outcome::Fail;
                entry.reason = Some(failure.reason.clone());
                entry.sent.clone_from(&failure.sent);
                entry.came.clone_from(&failure.came);
                entry.again = Some(again);
            }
            Verdict::Inconclusive(reason) => {
                entry.verdict = Outcome::Inconclusive;
                entry.reason = Some(reason.clone());
                entry.again = Some(again);
            }
            Verdict::Blocked(reason) => {
                entry.verdict = Outcome::Blocked;
                entry.reason = Some(reason.clone());
            }
            Verdict::Skip(reason) => {
                entry.verdict = Outcome::Skip;
                entry.reason = Some(reason.clone());
            }
            Verdict::Excluded(reason) => {
                entry.verdict = Outcome::Excluded;
                entry.reason = Some((*reason).to_owned());
            }
        }
        entry
    }

    fn source(&mut self, quote: &str, cite: &str, because: Option<&str>) {
        self.because = because.map(str::to_owned);
        quote.clone_into(&mut self.quote);
        self.cite = specification::address(cite).unwrap_or_else(|| cite.to_owned());
    }

    /// Whether it is about a capability that is not declared.
    pub(super) fn is_undeclared(&self) -> bool {
        self.why().contains("does not declare")
    }

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

    /// Whether it is broken, not accepted, and decides the verdict.
    #[must_use]
    pub fn fails(&self, strict: bool) -> bool {
        self.verdict == Outcome::Fail && self.accepted.is_none() && self.tier.decides(strict)
    }
}

impl Outcome {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Blocked => "blocked",
            Self::Skip => "skip",
            Self::Excluded => "excluded",
        }
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

/// Rounded, so that a report is not read for more than was measured.
fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
