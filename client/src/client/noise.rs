//! What an agent writes to its standard output that is no message.
//!
//! It is skipped and never answered; the first lines are kept, because they often say why
//! an agent does not work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::Observer;

use crate::text::one_line;

/// Lines kept.
const MOST_LINES: usize = 5;

/// Characters kept of a line.
const MOST_CHARACTERS: usize = 200;

/// Counts and keeps noise, and passes everything on to whoever else wants to know.
pub(super) struct Noise {
    kept: Mutex<Kept>,
    observer: Option<Box<dyn Observer>>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: Vec<String>,
    count: u64,
}

impl std::fmt::Debug for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lock().fmt(f)
    }
}

impl Noise {
    pub(super) fn new(observer: Option<Box<dyn Observer>>) -> Self {
        Self {
            kept: Mutex::default(),
            observer,
        }
    }

    /// The first lines, made fit for a message, and a word on how many more there were.
    pub(super) fn lines(&self) -> Vec<String> {
        let kept = self.lock();
        let mut lines = kept.lines.clone();
        let more = kept.count - lines.len() as u64;
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        lines
    }

    fn note(&self, line: impl FnOnce() -> String) {
        let mut kept = self.lock();
        kept.count += 1;
        if kept.lines.len() < MOST_LINES {
            let line = line();
            kept.lines.push(line);
        }
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of the observer that goes into the connection.
pub(super) struct Listening(pub(super) std::sync::Arc<Noise>);

impl Observer for Listening {
    fn invalid_message(&self, line: &[u8], reason: &str) {
        self.0.note(|| {
            // A character takes four bytes at most, and white space is folded away.
            let start = line.get(..8 * MOST_CHARACTERS).unwrap_or(line);
            one_line(&String::from_utf8_lossy(start), MOST_CHARACTERS)
        });
        if let Some(observer) = &self.0.observer {
            observer.invalid_message(line, reason);
        }
    }

    fn message_too_long(&self, bytes: u64) {
        self.0.note(|| format!("a line of {bytes} bytes"));
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
        let noise = Arc::new(Noise::new(None));
        let listening = Listening(noise.clone());
        assert_eq!(noise.lines(), [""; 0]);
        listening.invalid_message(b"\x1b[1mLoading\x1b[0m ...", "no JSON");
        listening.message_too_long(99);
        for _ in 0..1000 {
            listening.invalid_message("ü".repeat(10_000).as_bytes(), "no JSON");
        }
        let lines = noise.lines();
        assert_eq!(lines[0], "[1mLoading[0m ...");
        assert_eq!(lines[1], "a line of 99 bytes");
        assert_eq!(lines[2].chars().count(), MOST_CHARACTERS + 1);
        assert_eq!(lines[5], "… and 997 more");
        assert_eq!(lines.len(), 6);
    }
}
