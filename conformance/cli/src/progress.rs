//! Progress on standard error, for work that takes longer than two seconds.
//!
//! Nothing is drawn before that, nor when standard error is no terminal: then checks have a line every
//! ten seconds, so that a log shows that they go on.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work may take before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a line is written where no bar can be drawn.
const EVERY: Duration = Duration::from_secs(10);

/// A bar that appears when it is needed.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    shown: bool,
    /// Instead of the bar.
    lines: Option<Lines>,
}

impl Progress {
    /// Work measured in bytes.
    pub(crate) fn bytes(total: u64) -> Self {
        Self::new(total, "{wide_bar} {bytes} of {total_bytes}, {eta} left")
    }

    /// Work measured in checks.
    pub(crate) fn checks() -> Self {
        let mut progress = Self::new(0, "{wide_bar} {pos} of {len} checks");
        if !stderr().is_terminal() {
            progress.lines = Some(Lines::start(EVERY, stderr()));
        }
        progress
    }

    /// Is at `done` of `total`.
    pub(crate) fn reach(&mut self, done: usize, total: usize) {
        if let Some(lines) = &self.lines {
            lines.reach(done, total);
        }
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
            lines: None,
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

/// A thread that writes how many checks have ended, whether or not one of them ends meanwhile.
#[derive(Debug)]
struct Lines {
    /// How many have ended, and how many there are.
    counts: Arc<[AtomicUsize; 2]>,
    /// Nothing is sent; the thread ends with it.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn start(every: Duration, mut to: impl Write + Send + 'static) -> Self {
        let counts = Arc::<[AtomicUsize; 2]>::default();
        let (stop, stopped) = sync_channel(0);
        let seen = counts.clone();
        let began = Instant::now();
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let [done, total] = seen.each_ref().map(|count| count.load(Ordering::Relaxed));
                let seconds = began.elapsed().as_secs();
                let line = match total {
                    0 => format!("acp-conformance: no check has ended after {seconds} s\n"),
                    _ => format!("acp-conformance: {done} of {total} checks after {seconds} s\n"),
                };
                // Nobody may read it.
                let _ = to.write_all(line.as_bytes());
            }
        });
        Self {
            counts,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn reach(&self, done: usize, total: usize) {
        let [of_done, of_total] = &*self.counts;
        of_done.store(done, Ordering::Relaxed);
        of_total.store(total, Ordering::Relaxed);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has not panicked: it only writes.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Each write, as text.
    struct Writes(Sender<String>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_shows_that_checks_go_on() {
        const GUARD: Duration = Duration::from_secs(20);
        let (writes, written) = channel();
        let lines = Lines::start(Duration::from_millis(1), Writes(writes));
        let first = written.recv_timeout(GUARD).unwrap();
        assert!(
            first.starts_with("acp-conformance: no check has ended after "),
            "{first}"
        );
        lines.reach(3, 9);
        let says = "acp-conformance: 3 of 9 checks after ";
        while !written.recv_timeout(GUARD).unwrap().starts_with(says) {}
        drop(lines);
        // What was written meanwhile, and then the end of the thread.
        while written.try_recv().is_ok() {}
        assert_eq!(
            written.try_recv(),
            Err(std::sync::mpsc::TryRecvError::Disconnected)
        );
    }
}
