//! How often and for how long a lost connection is opened again.

use std::time::Duration;

/// How a lost connection to an agent is opened again, or an agent that has ended is started again.
///
/// Attempts are made after growing, random waits, until [`limit`](Self::limit) is over. An agent
/// behind a URL that answers 401, 403, 404 to `initialize`, or 410 is not asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnect {
    /// How long it is tried after the loss (default 5 minutes). The time goes on while agents that
    /// are started end again within [`max_wait`](Self::max_wait).
    pub limit: Duration,
    /// The first wait (default 250 ms). Waits are chosen at random from half to all of it.
    pub first_wait: Duration,
    /// The longest wait (default 15 s).
    pub max_wait: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(300),
            first_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(15),
        }
    }
}

impl Reconnect {
    /// Sets how long it is tried after the loss.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the first and the longest wait.
    #[must_use]
    pub fn with_waits(mut self, first: Duration, max: Duration) -> Self {
        (self.first_wait, self.max_wait) = (first, max);
        self
    }
}
