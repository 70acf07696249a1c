//! The result of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CancelTimes, Coverage};
use crate::harness::{Failure, Stop};
use crate::requirements::{Area, Requirement};

/// The verdict of one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Obeyed, as far as the check can tell.
    Pass,
    /// Broken.
    Fail(Box<Failure>),
    /// About a capability that the agent does not declare.
    Skip(String),
    /// Nothing was seen that decides.
    Inconclusive(String),
    /// Depends on a step that is impossible with this agent.
    Blocked(String),
    /// Not checked at all.
    Excluded(&'static str),
}

/// One requirement of a run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its area.
    pub area: &'static Area,
    /// The requirement.
    pub requirement: &'static Requirement,
    /// Its verdict.
    pub verdict: Verdict,
    /// How long the check took.
    pub took: Duration,
    /// How many prompts it sent.
    pub prompts: usize,
    /// How many connections of its own it opened.
    pub starts: usize,
    /// Whether it called a method of sessions.
    pub opens_session: bool,
    /// Files of its connections, in the folder of the transcripts.
    pub transcripts: Vec<String>,
}

impl Row {
    /// A row that was judged without an effort of its own.
    pub(super) fn new(
        (area, requirement): (&'static Area, &'static Requirement),
        verdict: Verdict,
    ) -> Self {
        Self {
            area,
            requirement,
            verdict,
            took: Duration::ZERO,
            prompts: 0,
            starts: 0,
            opens_session: false,
            transcripts: Vec::new(),
        }
    }
}

/// The step that failed, and blocks all rows that depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootCause {
    /// `initialize`, `login`, `session` or `prompt`.
    pub step: String,
    /// What happened.
    pub reason: String,
    /// What to do; empty when nothing but a repair of the agent helps.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// The message that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came: Option<String>,
}

impl RootCause {
    /// Creates the cause from its words, and from the evidence of a failed step.
    pub(super) fn new(step: &str, reason: &str, remedy: &str, evidence: &Stop) -> Self {
        let (sent, came) = match evidence {
            Stop::Fail(failure) => (failure.sent.clone(), failure.came.clone()),
            _ => (None, None),
        };
        let reason = match evidence {
            Stop::Fail(failure) if reason.is_empty() => &failure.reason,
            _ => reason,
        };
        Self {
            step: step.to_owned(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
            sent,
            came,
        }
    }

    /// Returns the failure of the requirement that the step breaks.
    pub(super) fn failure(&self) -> Failure {
        Failure {
            reason: self.reason.clone(),
            sent: self.sent.clone(),
            came: self.came.clone(),
        }
    }
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

/// A whole run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The agent's command; empty for one within this process.
    pub command: String,
    /// The agent's name and version, as it reports them.
    pub agent: String,
    /// In the order of the table.
    pub rows: Vec<Row>,
    /// The step that failed, if there is one.
    pub root_cause: Option<RootCause>,
    /// How many prompts were sent.
    pub prompts: usize,
    /// How long turns went on after `session/cancel`; `None` if none was cancelled.
    pub cancel_times: Option<CancelTimes>,
    /// `None` when only some requirements were run.
    pub coverage: Option<Coverage>,
    /// How much was said.
    pub messages: Messages,
    /// The version of the protocol.
    pub protocol: u64,
    /// How long it took.
    pub took: Duration,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// What a quick run has left out, and why; `None` if nothing.
    pub quick: Option<String>,
    /// The words of the prompts that the user, or the agent, has set.
    pub words: Vec<String>,
}

impl Verdict {
    /// The name in reports.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Skip(_) => "skip",
            Self::Inconclusive(_) => "inconclusive",
            Self::Blocked(_) => "blocked",
            Self::Excluded(_) => "excluded",
        }
    }
}

impl From<Result<(), Stop>> for Verdict {
    fn from(outcome: Result<(), Stop>) -> Self {
        match outcome {
            Ok(()) => Self::Pass,
            Err(Stop::Fail(failure)) => Self::Fail(failure),
            Err(Stop::Skip(reason)) => Self::Skip(reason),
            Err(Stop::Inconclusive(reason)) => Self::Inconclusive(reason),
            Err(Stop::Blocked(reason)) => Self::Blocked(reason),
        }
    }
}

impl Report {
    /// Rows whose verdict goes by this name.
    pub fn with<'a>(&'a self, verdict: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.verdict.as_str() == verdict)
    }

    /// Whether no requirement that decides is broken.
    #[must_use]
    pub fn is_conformant(&self, strict: bool) -> bool {
        !self
            .with("fail")
            .any(|row| row.requirement.tier.decides(strict))
    }
}
