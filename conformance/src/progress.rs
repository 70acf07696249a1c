//! Progress on standard error, for work that takes longer than two seconds.
//!
//! Nothing is drawn before that, nor when standard error is no terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work may take before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar that appears when it is needed.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
}

impl Progress {
    /// Work measured in bytes.
    pub(crate) fn bytes(total: u64) -> Self {
        Self::new(total, "{wide_bar} {bytes} of {total_bytes}, {eta} left")
    }

    /// Work measured in checks.
    pub(crate) fn checks() -> Self {
        Self::new(0, "{wide_bar} {pos} of {len} checks")
    }

    /// Is at `done` of `total`.
    pub(crate) fn reach(&mut self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done.saturating_sub(1) as u64);
        self.advance(1);
    }

    fn new(total: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        // The templates are constants; a bad one only loses its looks.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self {
            bar,
            started: Instant::now(),
            shown: false,
        }
    }

    /// Moves on by `amount`.
    pub(crate) fn advance(&mut self, amount: u64) {
        if !self.shown && self.started.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.inc(amount);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
