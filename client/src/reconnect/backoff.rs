//! Waits between attempts to connect: exponential, with jitter, up to a time limit.

use std::time::Duration;

use tokio::time::Instant;

use super::settings::Reconnect;

/// The waits after one lost connection.
#[derive(Debug)]
pub struct Backoff {
    settings: Reconnect,
    wait: Duration,
    /// When the first attempt failed.
    since: Option<Instant>,
    /// When the current connection was opened.
    opened: Option<Instant>,
}

impl Backoff {
    /// Creates the waits of a connection that is open.
    pub fn new(settings: Reconnect) -> Self {
        Self {
            settings,
            wait: settings.first_wait,
            since: None,
            opened: None,
        }
    }

    /// Records that a connection was opened. The waits stay long until it has proved stable.
    pub fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// Resets the waits and the time limit after a success.
    pub fn reset(&mut self) {
        *self = Self::new(self.settings);
    }

    /// Returns the wait after a failed attempt, at least `least`; `None` after the limit.
    ///
    /// A connection that ends sooner than `max_wait` counts as a failed attempt.
    pub fn next(&mut self, least: Duration) -> Option<Duration> {
        let max_wait = self.settings.max_wait;
        // Later attempts say nothing of how long that connection lasted.
        if let Some(opened) = self.opened.take()
            && opened.elapsed() >= max_wait
        {
            self.reset();
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let left = self.settings.limit.checked_sub(now - since)?;
        let half = self.wait / 2;
        let jitter = half.mul_f64(random());
        let wait = (half + jitter).max(least.min(max_wait));
        self.wait = (self.wait * 2).min(max_wait);
        // The last attempt is made at the limit.
        (!left.is_zero()).then(|| wait.min(left))
    }
}

/// Returns a number from 0 to 1.
fn random() -> f64 {
    // Without a random source the jitter is constant.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_to_their_cap_and_end_at_the_limit() {
        let settings = Reconnect::default()
            .with_limit(Duration::from_secs(60))
            .with_waits(Duration::from_secs(1), Duration::from_secs(8));
        let mut backoff = Backoff::new(settings);
        let started = Instant::now();
        let mut waits = Vec::new();
        while let Some(wait) = backoff.next(Duration::ZERO) {
            waits.push(wait);
            tokio::time::sleep(wait).await;
        }
        assert_eq!(started.elapsed().as_secs(), 60);
        for (wait, most) in waits.iter().zip([1, 2, 4, 8, 8, 8]) {
            let most = Duration::from_secs(most);
            assert!((most / 2..=most).contains(wait), "{waits:?}");
        }
        // A connection that ends at once counts as a failed attempt.
        backoff.opened();
        assert_eq!(backoff.next(Duration::ZERO), None);
        backoff.opened();
        backoff.reset();
        assert!(backoff.next(Duration::ZERO).unwrap() <= Duration::from_secs(1));
        let asked = backoff.next(Duration::from_secs(5)).unwrap();
        assert_eq!(asked.as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_lasted_makes_the_waits_short_again() {
        let settings = Reconnect::default()
            .with_limit(Duration::from_secs(60))
            .with_waits(Duration::from_secs(1), Duration::from_secs(8));
        let mut backoff = Backoff::new(settings);
        for _ in 0..20 {
            while backoff.next(Duration::ZERO).unwrap() < Duration::from_secs(4) {}
            backoff.opened();
            tokio::time::sleep(Duration::from_secs(8)).await;
            assert!(backoff.next(Duration::ZERO).unwrap() <= Duration::from_secs(1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_connection_does_not_restart_the_limit_later() {
        let settings = Reconnect::default()
            .with_limit(Duration::from_secs(60))
            .with_waits(Duration::from_secs(1), Duration::from_secs(8));
        let mut backoff = Backoff::new(settings);
        let started = Instant::now();
        let mut attempts = 0;
        while let Some(wait) = backoff.next(Duration::ZERO) {
            tokio::time::sleep(wait).await;
            attempts += 1;
            // Every third attempt succeeds, and its connection ends at once.
            if attempts % 3 == 0 {
                backoff.opened();
            }
            assert!(started.elapsed().as_secs() <= 60);
        }
        assert_eq!(started.elapsed().as_secs(), 60);
    }
}
