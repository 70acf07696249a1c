//! The end of a run before its time: by a signal of its user, or by the limit of a quick run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a wait looks whether the run is interrupted.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// Why something is not judged in a run that was interrupted.
pub(crate) const INTERRUPTED: &str = "the run was interrupted";

/// Whether a run is to end before its time. Who interrupts one of its clones interrupts all.
///
/// Connections notice within a quarter of a second, and wait for nothing any more.
#[derive(Clone, Debug, Default)]
pub struct Interruption {
    interrupted: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Interruption {
    /// Returns one that also ends the waits of connections at this time, if it is given.
    #[must_use]
    pub(crate) fn until(&self, deadline: Option<Instant>) -> Self {
        Self {
            interrupted: self.interrupted.clone(),
            deadline,
        }
    }

    /// Returns whether connections wait for nothing any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_interrupted()
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Ends the run. Returns whether it was to end before.
    pub fn interrupt(&self) -> bool {
        self.interrupted.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the user has ended the run.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
