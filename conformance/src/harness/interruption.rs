//! The end of a run that its user asks for, by a signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a run is to end before its time. All clones are one.
///
/// Connections notice within a quarter of a second, and wait for nothing any more.
#[derive(Clone, Debug, Default)]
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Ends the run. Returns whether it was to end before.
    pub fn interrupt(&self) -> bool {
        self.0.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the run is to end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
