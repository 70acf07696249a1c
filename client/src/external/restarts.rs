//! The bound of an agent's restarts.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Result};

/// The latest restarts of an agent.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    at: VecDeque<Instant>,
    /// Whether the agent has failed since it was started.
    pub(super) has_failed: bool,
}

/// The maximum number of restarts within a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RestartLimit {
    pub(super) most: usize,
    pub(super) within: Duration,
}

impl Restarts {
    /// Counts a start if it follows a failure.
    ///
    /// # Errors
    ///
    /// [`Error::RestartLimit`] if there were too many.
    pub(super) fn count(&mut self, limit: Option<RestartLimit>) -> Result<()> {
        let Some(limit) = limit.filter(|_| self.has_failed) else {
            return Ok(());
        };
        let now = Instant::now();
        self.at.retain(|at| now - *at < limit.within);
        if self.at.len() >= limit.most {
            return Err(Error::RestartLimit {
                restarts: limit.most,
                within: limit.within,
            });
        }
        self.at.push_back(now);
        Ok(())
    }
}
