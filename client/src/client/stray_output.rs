//! Collects output of an agent that is not a valid message.
//!
//! Such output is skipped and not answered. The first lines are kept for error messages, because they
//! often contain the cause.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::Observer;

use acp_sdk::text::one_line;

/// Maximum number of kept lines.
const MAX_LINES: usize = 5;

/// Maximum number of characters of a kept line.
const MAX_CHARACTERS: usize = 200;

/// Counts and keeps stray output, and forwards all callbacks to the application's observer.
pub(super) struct StrayOutput {
    first: Mutex<FirstLines>,
    observer: Option<Box<dyn Observer>>,
}

#[derive(Debug, Default)]
struct FirstLines {
    lines: Vec<String>,
    count: u64,
}

impl std::fmt::Debug for StrayOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lock().fmt(f)
    }
}

impl StrayOutput {
    pub(super) fn new(observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            first: Mutex::default(),
            observer,
        }
    }

    /// Returns the first lines, sanitized, and a note on the number of further lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let first = self.lock();
        let mut lines = first.lines.clone();
        let more = first.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        lines
    }

    fn record(&self, line: impl FnOnce() -> String) {
        let mut first = self.lock();
        first.count += 1;
        if first.lines.len() < MAX_LINES {
            let line = line();
            first.lines.push(line);
        }
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, FirstLines> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The observer that is passed to the connection.
pub(super) struct ForwardingObserver(pub(super) std::sync::Arc<StrayOutput>);

impl Observer for ForwardingObserver {
    fn invalid_message(&self, line: &[u8], reason: &str) {
        self.0.record(|| {
            // A character has at most four bytes, and white space is collapsed.
            let start = line.get(..8 * MAX_CHARACTERS).unwrap_or(line);
            one_line(&String::from_utf8_lossy(start), MAX_CHARACTERS)
        });
        if let Some(observer) = &self.0.observer {
            observer.invalid_message(line, reason);
        }
    }

    fn message_too_long(&self, bytes: u64) {
        self.0.record(|| format!("a line of {bytes} bytes"));
        if let Some(observer) = &self.0.observer {
            observer.message_too_long(bytes);
        }
    }

    fn dropped(&self, method: &str, path: &str, reason: &str) {
        if let Some(observer) = &self.0.observer {
            observer.dropped(method, path, reason);
        }
    }

    fn uncorrelated_error(&self, error: &str) {
        if let Some(observer) = &self.0.observer {
            observer.uncorrelated_error(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_first_lines_are_kept_and_the_rest_is_counted() {
        let stray_output = Arc::new(StrayOutput::new(None));
        let listening = ForwardingObserver(stray_output.clone());
        assert_eq!(stray_output.lines(), [""; 0]);
        listening.invalid_message(b"\x1b[1mLoading\x1b[0m ...", "no JSON");
        listening.message_too_long(99);
        for _ in 0..1000 {
            listening.invalid_message("ü".repeat(10_000).as_bytes(), "no JSON");
        }
        let lines = stray_output.lines();
        assert_eq!(lines[0], "Loading ...");
        assert_eq!(lines[1], "a line of 99 bytes");
        assert_eq!(lines[2].chars().count(), MAX_CHARACTERS + 1);
        assert_eq!(lines[5], "… and 997 more");
        assert_eq!(lines.len(), 6);
    }
}
