//! The report on an agent that cannot be used: one requirement is broken, all others are blocked.

use std::time::{Duration, Instant};

use super::report::{Report, RootCause, Row, Verdict};
use super::run::{Chosen, Options, all_rows};
use crate::harness::{Env, Recording};
use crate::requirements::{Check, Choice};

/// What all requirements need.
pub(super) const NO_ANSWER: &str = "needs an answer to initialize";
pub(super) const OTHER_VERSION: &str = "needs the version that was asked for";

/// Adds the requirement that the agent breaks to the chosen ones: an agent that cannot be used does
/// not conform, whatever was to be judged. One that was left out by name stays out.
pub(super) fn with_row(
    chosen: Vec<Chosen>,
    env: &Env,
    options: &Options,
    breaks: &str,
) -> Vec<Chosen> {
    let broken = broken(env, options, breaks);
    let is_broken = |id: &str| broken.is_some_and(|(_, row)| row.id == id);
    let is_chosen = |id: &str| chosen.iter().any(|(_, row)| row.id == id);
    all_rows(env)
        .filter(|(_, row)| is_chosen(row.id) || is_broken(row.id))
        .collect()
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
pub(super) fn blocked(
    chosen: &[Chosen],
    breaks: Option<&str>,
    cause: &RootCause,
    need: &str,
) -> Vec<Row> {
    let rows = chosen.iter().map(|(area, row)| {
        let verdict = match row.check {
            _ if Some(row.id) == breaks => Verdict::Fail(Box::new(cause.failure())),
            Check::Excluded(reason) => Verdict::Excluded(reason),
            _ => Verdict::Blocked(format!("{need}: {}", cause.reason)),
        };
        Row {
            area,
            requirement: row,
            verdict,
            took: Duration::ZERO,
            prompts: 0,
            opens_session: false,
            transcripts: Vec::new(),
        }
    });
    rows.collect()
}

impl Report {
    /// Adds the requirement that the agent breaks, as [`with_row`] does, after the others were judged.
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
    pub(super) fn ended(
        mut self,
        rows: Vec<Row>,
        cause: RootCause,
        recording: Recording,
        started: Instant,
    ) -> Self {
        self.rows = rows;
        self.root_cause = Some(cause);
        self.count_messages(&[recording]);
        self.took = started.elapsed();
        self
    }
}
