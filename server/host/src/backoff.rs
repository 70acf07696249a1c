//! When a process may be started again.

use std::time::Duration;

use acp_server::internal::clock::jittered;
use tokio::time::Instant;

use super::{HostedError, HostedLimits};

/// The failures of a process in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    next: Option<Instant>,
    last: String,
}

impl Backoff {
    /// The process has ended after a life, for a reason.
    pub(super) fn ended(&mut self, lived: Duration, reason: &str, limits: &HostedLimits) {
        if lived >= limits.stable_after {
            *self = Self::default();
        } else {
            self.failed(reason, limits);
        }
    }

    /// The process could not be started.
    pub(super) fn failed(&mut self, reason: &str, limits: &HostedLimits) {
        let doubled = limits.restart_delay * 2_u32.saturating_pow(self.failures.min(16));
        let delay = doubled.min(limits.max_restart_delay);
        self.failures = self.failures.saturating_add(1);
        self.next = Some(Instant::now() + jittered(delay));
        reason.clone_into(&mut self.last);
    }

    /// Waits until the process may be started.
    ///
    /// # Errors
    ///
    /// When it has failed so often that nobody should wait for it.
    pub(super) async fn wait(&self, limits: &HostedLimits) -> Result<(), HostedError> {
        let Some(next) = self.next else { return Ok(()) };
        let wait = next.saturating_duration_since(Instant::now());
        if self.failures >= limits.failures && !wait.is_zero() {
            return Err(HostedError::Failing {
                failures: self.failures,
                wait: Duration::from_millis(wait.as_millis().try_into().unwrap_or(u64::MAX)),
                last: self.last.clone(),
            });
        }
        tokio::time::sleep_until(next).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_until_nobody_waits_for_them() {
        let limits = HostedLimits::default();
        let mut backoff = Backoff::default();
        assert!(backoff.wait(&limits).await.is_ok());
        let mut expected = limits.restart_delay;
        for _ in 1..limits.failures {
            backoff.failed("no luck", &limits);
            let before = Instant::now();
            assert!(backoff.wait(&limits).await.is_ok());
            let waited = before.elapsed();
            assert!(waited >= expected * 3 / 4 && waited <= expected + Duration::from_millis(2));
            expected *= 2;
        }
        backoff.failed("the last one", &limits);
        let refused = backoff.wait(&limits).await.unwrap_err().to_string();
        assert!(refused.contains("failed 5 times"), "{refused}");
        assert!(refused.contains("the last one"), "{refused}");
        tokio::time::advance(limits.max_restart_delay).await;
        assert!(backoff.wait(&limits).await.is_ok(), "one more attempt");
        for _ in 0..100 {
            backoff.failed("again", &limits);
        }
        tokio::time::advance(limits.max_restart_delay).await;
        assert!(backoff.wait(&limits).await.is_ok(), "the delay is capped");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_lived_is_restarted_at_once() {
        let limits = HostedLimits::default();
        let mut backoff = Backoff::default();
        backoff.ended(Duration::from_secs(1), "early", &limits);
        assert!(backoff.next.is_some());
        backoff.ended(limits.stable_after, "late", &limits);
        assert!(backoff.next.is_none());
    }
}
