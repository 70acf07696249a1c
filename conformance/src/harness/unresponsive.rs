//! What the agent never answers: after a few waits for nothing, there is no point in
//! waiting for it again, and a suite of hundreds of checks must end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many waits for an answer to a method must time out.
const WAITS: usize = 3;

/// Methods whose answers timed out, over all connections of a run.
#[derive(Debug, Default)]
pub struct Unresponsive {
    /// By method; `None` once an answer came.
    waits: Mutex<HashMap<String, Option<usize>>>,
}

impl Unresponsive {
    /// An answer to this method came.
    pub(super) fn answered(&self, method: &str) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.insert(method.to_owned(), None);
    }

    /// An answer to this method did not come in time.
    pub(super) fn waited(&self, method: &str) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waits) = waits.entry(method.to_owned()).or_insert(Some(0)) {
            *waits += 1;
        }
    }

    /// Whether an answer to this method is worth waiting for.
    pub(super) fn is_hopeless(&self, method: &str) -> bool {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = waits.get(method).copied().flatten();
        waits.is_some_and(|waits| waits >= WAITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_ever_is_a_reason_to_wait() {
        let silence = Unresponsive::default();
        for _ in 0..WAITS {
            assert!(!silence.is_hopeless("m"));
            silence.waited("m");
        }
        assert!(silence.is_hopeless("m") && !silence.is_hopeless("other"));
        silence.answered("m");
        silence.waited("m");
        assert!(!silence.is_hopeless("m"));
    }
}
