//! The end of a connection: handlers complete, and what was accepted is written.
//!
//! Limits:
//! - handlers have `shutdown_timeout` after the last one that completed; the others are dropped,
//!   which answers their requests with an error. The time does not count while output waits for
//!   the peer, because handlers wait for room in it. All handlers together have
//!   `shutdown_timeout` and `drain_timeout` in any case;
//! - the peer has `drain_timeout` for each piece of output that it accepts.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::driver::Loop;
use crate::error::CloseReason;
use crate::sync::{JoinSet, Sleep, sleep};

impl Loop {
    /// Lets the handlers complete and writes everything out.
    ///
    /// # Errors
    ///
    /// The reason why accepted output could not be written.
    pub(super) async fn finish(&mut self, reason: &CloseReason) -> Result<(), CloseReason> {
        let options = &self.dispatcher.shared.options;
        let mut clocks = Clocks {
            lost: None,
            aborted: false,
            handlers: Stopwatch::new(options.shutdown_timeout),
            all_handlers: Stopwatch::new(
                options
                    .shutdown_timeout
                    .saturating_add(options.drain_timeout),
            ),
            output: Stopwatch::new(options.drain_timeout),
        };
        std::future::poll_fn(|cx| self.poll_finish(reason, &mut clocks, cx)).await
    }

    fn poll_finish(
        &mut self,
        reason: &CloseReason,
        clocks: &mut Clocks,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), CloseReason>> {
        let shared = self.dispatcher.shared.clone();
        loop {
            shared.outbox.register(cx.waker());
            if self.write(clocks, cx) {
                continue;
            }
            let running = match self.dispatcher.tasks.poll_join_next(cx) {
                Poll::Ready(Some(_)) => {
                    clocks.handlers.restart();
                    continue;
                }
                Poll::Ready(None) => false,
                Poll::Pending => true,
            };
            if !running {
                if self.link.is_closed() {
                    return Poll::Ready(clocks.lost.take().map_or(Ok(()), Err));
                }
                // Nothing more is accepted: tasks of the application could send without end.
                if shared.outbox.seal(reason) {
                    continue;
                }
            }
            if !self.enforce_limits(running, clocks, cx) {
                return Poll::Pending;
            }
        }
    }

    /// Writes some output. Returns whether the peer accepted some, or the output failed.
    fn write(&mut self, clocks: &mut Clocks, cx: &mut Context<'_>) -> bool {
        let unwritten = self.has_unwritten();
        match self.link.poll_write(cx, &self.dispatcher.shared) {
            Poll::Ready(Ok(())) => clocks.output.restart(),
            Poll::Ready(Err(error)) => {
                let failed = CloseReason::WriteFailed(Arc::new(error));
                self.discard_output(&failed);
                // Without anything left to write, nothing was lost.
                if unwritten {
                    clocks.lost.get_or_insert(failed);
                }
            }
            Poll::Pending => return false,
        }
        true
    }

    /// Discards the output or drops handlers when a limit is reached. Returns whether one was.
    fn enforce_limits(&mut self, running: bool, clocks: &mut Clocks, cx: &mut Context<'_>) -> bool {
        let blocked = self.has_unwritten();
        if blocked || !running {
            clocks.handlers.pause();
            if clocks.output.poll_elapsed(cx) {
                let failed = CloseReason::WriteTimedOut(clocks.output.limit);
                self.discard_output(&failed);
                clocks.lost = Some(failed);
                return true;
            }
        } else {
            clocks.output.restart();
        }
        let late = !blocked && clocks.handlers.poll_elapsed(cx);
        let expired = running && (late || clocks.all_handlers.poll_elapsed(cx));
        if expired {
            self.drop_handlers(clocks);
        }
        expired
    }

    /// Aborts the handlers; at the second time, leaves behind those that block their thread.
    fn drop_handlers(&mut self, clocks: &mut Clocks) {
        let running = self.dispatcher.tasks.len();
        if clocks.aborted {
            tracing::error!(running, "handlers that block their thread were left behind");
            self.dispatcher.tasks = JoinSet::new();
            return;
        }
        tracing::warn!(running, "dropped handlers that did not complete in time");
        // Dropping them answers their requests. It happens where they run.
        self.dispatcher.tasks.abort_all();
        clocks.aborted = true;
        clocks.handlers.restart();
        clocks.all_handlers.restart();
    }

    fn has_unwritten(&self) -> bool {
        self.dispatcher.shared.outbox.has_unsent() || !self.link.is_drained()
    }

    /// Discards what is unwritten and refuses more: the output has failed.
    pub(super) fn discard_output(&mut self, reason: &CloseReason) {
        self.dispatcher.shared.outbox.close(reason);
        self.link.discard();
    }
}

struct Clocks {
    /// Why accepted output could not be written.
    lost: Option<CloseReason>,
    /// Whether the handlers have been aborted.
    aborted: bool,
    handlers: Stopwatch,
    all_handlers: Stopwatch,
    output: Stopwatch,
}

/// Measures time without progress.
struct Stopwatch {
    limit: Duration,
    /// Time that passed before the last pause.
    used: Duration,
    /// Since when it runs, and what wakes the task at the limit.
    running: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Stopwatch {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            used: Duration::ZERO,
            running: None,
        }
    }

    fn restart(&mut self) {
        self.used = Duration::ZERO;
        self.running = None;
    }

    fn pause(&mut self) {
        if let Some((since, _)) = self.running.take() {
            self.used += since.elapsed();
        }
    }

    /// Runs on. Returns whether the limit has been reached.
    fn poll_elapsed(&mut self, cx: &mut Context<'_>) -> bool {
        let left = self.limit.saturating_sub(self.used);
        let start = || (Instant::now(), Box::pin(sleep(left)));
        let (_, timer) = self.running.get_or_insert_with(start);
        timer.as_mut().poll(cx).is_ready()
    }
}
