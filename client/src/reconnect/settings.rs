//! The intervals and the time limit of reconnecting.

use std::time::Duration;

/// Settings for opening a lost connection again, or restarting an agent that has exited.
///
/// Attempts follow after exponential waits with jitter, until [`limit`](Self::limit). After the
/// status 401, 403, 410, or 404 to `initialize`, no further attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnect {
    /// Time limit of all attempts after a loss (default 5 minutes). It continues to run while
    /// restarted agents exit again within [`max_wait`](Self::max_wait).
    pub limit: Duration,
    /// The first wait (default 250 ms). Each wait is randomized between half of it and all of it.
    pub first_wait: Duration,
    /// The longest wait (default 15 s).
    pub max_wait: Duration,
    /// Time limit for the agent to continue sessions on a new connection (default 60 s). It starts
    /// again with each session that the agent has continued. The others are lost after it.
    pub continue_timeout: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(300),
            first_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(15),
            continue_timeout: Duration::from_secs(60),
        }
    }
}

impl Reconnect {
    /// Sets the time limit of all attempts after a loss.
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

    /// Sets the time limit for the agent to continue sessions on a new connection.
    ///
    /// Meanwhile, requests and notifications of these sessions wait, up to 8 MiB of them in total.
    /// Other messages are sent. A session that is not continued in time ends with
    /// [`Gap::Lost`](crate::Gap::Lost).
    #[must_use]
    pub fn with_continue_timeout(mut self, limit: Duration) -> Self {
        self.continue_timeout = limit;
        self
    }
}
