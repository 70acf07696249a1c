//! A report from the result of a run.

use std::time::Duration;

use super::document::{Conformity, Document, Entry, Outcome, VERSION};
use super::list::Listed;
use super::{date, table};
use crate::clients;
use crate::requirements::Choice;
use crate::specification::PINNED;
use crate::suite::{self, Messages, Verdict, seconds};
use crate::wire::Party;

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
            let listed = Listed::of_agents(row.area, row.requirement);
            Entry {
                seconds: seconds(row.took),
                prompts: row.prompts,
                transcripts: row.transcripts.clone(),
                ..listed.entry(&row.verdict, setting)
            }
        });
        let mut document = Self {
            command: report.command.clone(),
            name: report.agent.clone(),
            protocol: report.protocol,
            messages: report.messages,
            coverage: report.coverage.clone(),
            prompts: report.prompts,
            cancel_times: report.cancel_times,
            root_cause: report.root_cause.clone(),
            interrupted: report.interrupted,
            quick: report.quick.clone(),
            words: report.words.clone(),
            ..Self::new(Party::Agent, entries.collect(), report.took, setting)
        };
        document.decide();
        document
    }

    /// The report on a client.
    #[must_use]
    pub fn of_client(report: &clients::Report, setting: &RunInfo<'_>) -> Self {
        let entries = report.rows.iter().map(|(row, verdict)| {
            let files = report.transcripts.iter();
            let files = files.filter(|(scenario, _)| *scenario == row.scenario);
            Entry {
                transcripts: files.map(|(_, file)| file.clone()).collect(),
                ..Listed::of_clients(row).entry(verdict, setting)
            }
        });
        let mut document = Self {
            command: report.command.clone(),
            name: report.client.clone(),
            protocol: report.protocol.number(),
            messages: report.messages,
            interrupted: report.interrupted,
            ..Self::new(Party::Client, entries.collect(), report.took, setting)
        };
        document.decide();
        document
    }

    /// A report that has just ended, without a verdict.
    fn new(kind: Party, requirements: Vec<Entry>, took: Duration, setting: &RunInfo<'_>) -> Self {
        Self {
            version: VERSION,
            kind,
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            table: table::hash(&table::all()),
            specification: PINNED.name(),
            date: date::began(took),
            protocol: 1,
            command: String::new(),
            again: setting.again.all(setting.choice),
            name: String::new(),
            verdict: Conformity::Incomplete,
            conformant: false,
            strict: setting.strict,
            seconds: seconds(took),
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
        }
    }
}

impl Listed {
    /// The requirement with its verdict.
    fn entry(self, verdict: &Verdict, setting: &RunInfo<'_>) -> Entry {
        let (outcome, reason) = match verdict {
            Verdict::Pass => (Outcome::Pass, None),
            Verdict::Fail(failure) => (Outcome::Fail, Some(failure.reason.as_str())),
            Verdict::Inconclusive(reason) => (Outcome::Inconclusive, Some(reason.as_str())),
            Verdict::Blocked(reason) => (Outcome::Blocked, Some(reason.as_str())),
            Verdict::Skip(reason) => (Outcome::Skip, Some(reason.as_str())),
            Verdict::Excluded(reason) => (Outcome::Excluded, Some(*reason)),
        };
        let failure = match verdict {
            Verdict::Fail(failure) => Some(failure),
            _ => None,
        };
        let is_open = matches!(outcome, Outcome::Fail | Outcome::Inconclusive);
        Entry {
            id: self.id.to_owned(),
            area: self.area.to_owned(),
            tier: self.tier,
            quote: self.quote.to_owned(),
            cite: self.cite,
            because: self.because.map(str::to_owned),
            test: self.test.map(str::to_owned),
            verdict: outcome,
            reason: reason.map(str::to_owned),
            accepted: None,
            sent: failure.and_then(|failure| failure.sent.clone()),
            came: failure.and_then(|failure| failure.came.clone()),
            again: is_open.then(|| setting.again.one(self.id)),
            transcripts: Vec::new(),
            seconds: 0.0,
            prompts: 0,
        }
    }
}

#[cfg(test)]
#[path = "from_run_tests.rs"]
mod tests;
