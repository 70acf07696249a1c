//! Requests that are made again after a temporary failure.

use std::time::Duration;

use super::{Answer, ErrorKind, Model, ModelError, Request};

/// How often a request is made again, and how long to wait before.
///
/// Only requests whose answer has not begun are made again: what was shown cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Attempts, the first included (default: 4).
    pub attempts: u32,
    /// The wait before the second attempt; each further one is twice as long (default: 1 s).
    pub first: Duration,
    /// The longest wait. A provider that asks for a longer one is not asked again (default: 60 s).
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }
}

impl Retry {
    /// Asks a model until an answer begins. `waits` is called before each wait, with the reason.
    ///
    /// # Errors
    ///
    /// The last one.
    pub async fn answer(
        &self,
        model: &dyn Model,
        request: &Request,
        mut waits: impl AsyncFnMut(&ModelError, Duration),
    ) -> Result<Answer, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match model.answer(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = self.wait(attempt, error.kind);
            match wait {
                Some(wait) if error.is_temporary() => {
                    waits(&error, wait).await;
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(error),
            }
            attempt += 1;
        }
    }

    /// Returns how long to wait after an attempt; `None` if there is none after it.
    fn wait(&self, attempt: u32, kind: ErrorKind) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << (attempt - 1).min(16));
        let doubled = doubled.min(self.longest);
        match kind {
            ErrorKind::RateLimit {
                retry_after: Some(asked),
            } => (asked <= self.longest).then(|| asked.max(doubled)),
            _ => Some(doubled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_end() {
        let retry = Retry::default();
        let waits: Vec<_> = (1..=5)
            .map(|attempt| retry.wait(attempt, ErrorKind::Network))
            .collect();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(waits, [seconds(1), seconds(2), seconds(4), None, None]);
    }

    #[test]
    fn the_provider_may_ask_for_a_longer_wait() {
        let retry = Retry::default();
        let limited = |seconds| ErrorKind::RateLimit {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(retry.wait(1, limited(20)), Some(Duration::from_secs(20)));
        assert_eq!(retry.wait(3, limited(1)), Some(Duration::from_secs(4)));
        assert_eq!(retry.wait(1, limited(3600)), None);
    }
}
