//! The report on an agent that cannot be used: one requirement is broken, all others are blocked.

use std::time::Instant;

use super::plan::{Chosen, Options, PREFLIGHT, all_rows};
use super::preflight;
use super::report::{Report, RootCause, Row, Verdict};
use crate::harness::{Conn, Env, Failure, Recording, Stop};
use crate::requirements::{Check, Choice};

/// What all requirements need.
const NO_ANSWER: &str = "needs an answer to initialize";
const OTHER_VERSION: &str = "needs the version that was asked for";

/// Why an agent cannot be used at all.
pub(super) struct Unusable {
    /// The requirement that it breaks.
    breaks: Option<&'static str>,
    cause: RootCause,
    /// What everything needs.
    need: &'static str,
}

impl Unusable {
    /// It does not answer `initialize` as the protocol demands.
    pub(super) fn unanswered(breaks: &'static str, cause: RootCause) -> Self {
        Self {
            breaks: Some(breaks),
            cause,
            need: NO_ANSWER,
        }
    }

    /// It has answered `initialize`: by an error, if the requirement about that was chosen, or by another
    /// version than the one that is tested.
    pub(super) fn of(
        conn: &Conn,
        refused: Option<Box<Failure>>,
        chosen: &[Chosen],
    ) -> Option<Self> {
        let accepted = preflight::ACCEPTED;
        if let Some(failure) = refused
            && chosen.iter().any(|(_, row)| row.id == accepted)
        {
            let cause = RootCause::new("initialize", "", "", &Stop::Fail(failure));
            return Some(Self::unanswered(accepted, cause));
        }
        let (cause, breaks) = preflight::other_version(conn)?;
        Some(Self {
            breaks,
            cause,
            need: OTHER_VERSION,
        })
    }
}

/// Returns the row of this id, unless it was left out.
fn broken(env: &Env, options: &Options, id: &str) -> Option<Chosen> {
    let choice = Choice {
        only: vec![id.to_owned()],
        skip: options.choice.skip.clone(),
    };
    let rows = choice.of(all_rows(env), |(area, row)| (row.id, area.name, row.tier));
    // A version may lack the requirement.
    rows.unwrap_or_default().pop()
}

/// Returns the rows of an agent that cannot be used: the one that it breaks, if any, and all others,
/// which need what is said.
fn blocked(chosen: &[Chosen], breaks: Option<&str>, cause: &RootCause, need: &str) -> Vec<Row> {
    let rows = chosen.iter().map(|of| {
        let (_, row) = of;
        let verdict = match row.check {
            _ if Some(row.id) == breaks => Verdict::Fail(Box::new(cause.failure())),
            Check::Excluded(reason) => Verdict::Excluded(reason),
            _ => Verdict::Blocked(format!("{need}: {}", cause.reason)),
        };
        Row::new(*of, verdict)
    });
    rows.collect()
}

impl Report {
    /// Adds the requirement that the agent breaks, if it was not chosen: an agent that cannot be used does
    /// not conform, whatever was to be judged. One that was left out by name stays out.
    pub(super) fn breaks(&mut self, env: &Env, options: &Options, id: &str, cause: &RootCause) {
        if self.rows.iter().any(|row| row.requirement.id == id) {
            return;
        }
        let Some(chosen) = broken(env, options, id) else {
            return;
        };
        self.rows
            .extend(blocked(&[chosen], Some(id), cause, NO_ANSWER));
        let place = |id: &str| all_rows(env).position(|(_, row)| row.id == id);
        self.rows.sort_by_key(|row| place(row.requirement.id));
    }

    /// Completes the report of an agent that cannot be used.
    pub(super) fn unusable(
        mut self,
        env: &Env,
        options: &Options,
        chosen: &[Chosen],
        why: Unusable,
        recording: Recording,
        started: Instant,
    ) -> Self {
        let Unusable {
            breaks,
            cause,
            need,
        } = why;
        options.keep(PREFLIGHT, Some(&recording));
        self.rows = blocked(chosen, breaks, &cause, need);
        if let Some(breaks) = breaks {
            self.breaks(env, options, breaks, &cause);
        }
        self.root_cause = Some(cause);
        self.count_messages(&[recording]);
        self.took = started.elapsed();
        self
    }
}
