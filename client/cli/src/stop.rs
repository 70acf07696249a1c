//! Early ends of a run: signals, the timeout and closed output.
//!
//! The first signal and the timeout cancel the turn; the second signal, or a signal other than
//! Ctrl-C, ends the run immediately.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The reason for an early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Ctrl-C.
    Interrupt,
    /// Another signal that requests the exit.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "elsewhere there is only Ctrl-C")
    )]
    Signal,
    /// `acp cancel` of another process.
    Command,
    /// The timeout given by `--timeout`.
    Timeout,
    /// Standard output was closed.
    OutputClosed,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupted",
            Self::Signal => "ended by a signal",
            Self::Command => "cancelled by `acp cancel`",
            Self::Timeout => "the time is up",
            Self::OutputClosed => "nobody reads the output any more",
        })
    }
}

/// Clones share one state.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    /// The first reason.
    reason: Arc<OnceLock<Reason>>,
    cancel: CancellationToken,
    now: CancellationToken,
}

impl Stop {
    /// Listens to signals and the timeout until the runtime shuts down.
    ///
    /// # Errors
    ///
    /// Fails when signal handlers cannot be installed.
    pub(super) fn listen(timeout: Option<Duration>) -> std::io::Result<Self> {
        let stop = Self::default();
        signals(&stop)?;
        if let Some(timeout) = timeout {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(timeout).await;
                stop.cancel(Reason::Timeout);
            });
        }
        Ok(stop)
    }

    /// Requests the cancellation of the turn.
    pub(super) fn cancel(&self, reason: Reason) {
        let _ = self.reason.set(reason);
        self.cancel.cancel();
    }

    /// Ends the run immediately.
    #[cfg(unix)]
    fn now(&self, reason: Reason) {
        self.cancel(reason);
        self.now.cancel();
    }

    /// Returns the reason for cancelling the turn, if any.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }

    /// Waits until the turn is to be cancelled.
    pub(super) async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    #[cfg(feature = "proxy")]
    /// Returns the token that is cancelled when the turn is to be.
    pub(super) fn token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits until the run is to end immediately.
    pub(super) async fn ended(&self) {
        self.now.cancelled().await;
    }

    /// Handles a Ctrl-C: the second one, or one after the timeout, ends the run.
    fn interrupted(&self) {
        if self.cancel.is_cancelled() {
            self.now.cancel();
        } else {
            self.cancel(Reason::Interrupt);
        }
    }
}

#[cfg(unix)]
fn signals(stop: &Stop) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let stop = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => stop.interrupted(),
                Some(()) = terminate.recv() => stop.now(Reason::Signal),
                Some(()) = hangup.recv() => stop.now(Reason::Signal),
                else => return,
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn signals(stop: &Stop) -> std::io::Result<()> {
    let stop = stop.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            stop.interrupted();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_interrupt_ends_the_run() {
        let stop = Stop::default();
        stop.interrupted();
        assert!(stop.cancel.is_cancelled() && !stop.now.is_cancelled());
        stop.interrupted();
        assert!(stop.now.is_cancelled());
        assert_eq!(stop.reason(), Some(Reason::Interrupt));
    }

    #[test]
    fn an_interrupt_after_the_time_limit_ends_the_run() {
        let stop = Stop::default();
        stop.cancel(Reason::Timeout);
        stop.interrupted();
        assert!(stop.now.is_cancelled());
        assert_eq!(
            stop.reason(),
            Some(Reason::Timeout),
            "the first reason counts"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_cancels() {
        let stop = Stop::listen(Some(Duration::from_secs(3))).unwrap();
        let started = tokio::time::Instant::now();
        stop.cancelled().await;
        assert_eq!(started.elapsed().as_secs(), 3);
        assert_eq!(stop.reason(), Some(Reason::Timeout));
    }
}
