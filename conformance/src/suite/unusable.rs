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
    let skips = Choice {
        only: vec![breaks.to_owned()],
        skip: options.choice.skip.clone(),
    };
    let broken = skips.of(all_rows(env), |(area, row)| (row.id, area.name, row.tier));
    // A version may lack the requirement.
    let broken = broken.unwrap_or_default();
    let is_in = |list: &[Chosen], id: &str| list.iter().any(|(_, row)| row.id == id);
    all_rows(env)
        .filter(|(_, row)| is_in(&chosen, row.id) || is_in(&broken, row.id))
        .collect()
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
