//! Handing events to the store: one commit at a time, again while the store is unavailable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::LogInner;
use super::pauses::Pauses;
use super::state::Committer;
use crate::event::Batch;
use crate::log_repeated;
use crate::panic::{catch, catch_panic};
use crate::store::{Commit, Lease, StoreError, StoreErrorKind};

/// Since when a session is being closed, and the time that its store still has for each commit.
#[derive(Debug)]
pub(super) struct Closing {
    since: Instant,
    time: Duration,
}

impl Closing {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            since: Instant::now(),
            time,
        }
    }
}

impl LogInner {
    /// Commits until nothing is left, unless another task does. Returns a commit for which the store
    /// takes time: [`commit_waiting`](Self::commit_waiting) must be awaited with it.
    #[must_use]
    pub(super) fn commit_now(self: &Arc<Self>) -> Option<Commit> {
        {
            let mut state = self.state();
            if state.committer == Committer::Running {
                return None;
            }
            state.committer = Committer::Running;
        }
        self.commit_further()
    }

    /// Waits for a commit, and commits until nothing is left.
    pub(super) async fn commit_waiting(self: &Arc<Self>, commit: Commit) {
        let mut next = Some(commit);
        while let Some(commit) = next {
            let events = commit.events.clone();
            let result = match self.lease.get() {
                Some(lease) => {
                    let written = self.write(lease, commit);
                    let written = catch_panic("the store", Some(&self.session), written).await;
                    written.unwrap_or_else(|panic| Err(panicked(&panic)))
                }
                None => {
                    let reason = format!("session {} is not in the store yet", self.session);
                    Err(StoreError::new(StoreErrorKind::Conflict, reason))
                }
            };
            self.settle(events, &result);
            next = self.commit_further();
        }
    }

    /// Commits until nothing is left, or until a commit takes time.
    fn commit_further(self: &Arc<Self>) -> Option<Commit> {
        loop {
            let commit = self.state().take(&self.limits);
            let Some(commit) = commit else {
                // Whoever flushes waits for the end of the task, too.
                self.settled.notify_waiters();
                return None;
            };
            let write = || self.write_now(&commit);
            let result = match catch("the store", Some(&self.session), write) {
                Ok(Some(result)) => result,
                Ok(None) => return Some(commit),
                // Without an end of the commit, everything would wait for it.
                Err(panic) => Err(panicked(&panic)),
            };
            self.settle(commit.events, &result);
        }
    }

    /// A commit has ended.
    fn settle(&self, events: Option<Arc<Batch>>, result: &Result<(), StoreError>) {
        let mut state = self.state();
        let listeners = state.listeners();
        match result {
            Ok(()) => state.keep(events, &self.limits),
            Err(error) => {
                let session = self.session.as_str();
                log_repeated!(error, session, %error, "events are lost: the store failed");
                state.fail(error.clone());
                // Before anything else is appended, for it gets the same numbers.
                for listener in &listeners {
                    listener.rolled_back(state.committed);
                }
            }
        }
        let kept = state.kept_bytes();
        let waiters = state.take_waiters(result.is_err());
        drop(state);
        for waiter in waiters {
            // What has ended before it was committed is set already.
            let _ = waiter.set(result.clone());
        }
        self.memory.committed(self, kept);
        self.settled.notify_waiters();
        // Nothing that waits for events that could not be committed must wait any longer.
        for listener in listeners {
            match result {
                Ok(()) => listener.committed(),
                Err(error) => listener.failed(error),
            }
        }
    }

    /// Has the store commit without a wait; `None` if it must be [waited for](Self::write).
    fn write_now(&self, commit: &Commit) -> Option<Result<(), StoreError>> {
        let lease = self.lease.get()?;
        if self.in_doubt.load(Ordering::Relaxed) {
            return None;
        }
        let result = self.store.commit_now(lease, commit)?;
        let in_doubt = result.as_ref().is_err_and(leaves_doubt);
        self.in_doubt.store(in_doubt, Ordering::Relaxed);
        let again = matches!(&result, Err(error) if error.kind() == StoreErrorKind::Unavailable);
        (!again).then_some(result)
    }

    /// Has the store commit, and tries again while it is unavailable.
    async fn write(&self, lease: &Lease, commit: Commit) -> Result<(), StoreError> {
        match self.attempt(lease, &commit, false).await {
            Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                // Boxed, because it is rare, and every turn has room for it otherwise.
                Box::pin(self.retry(lease, &commit, error)).await
            }
            result => result,
        }
    }

    /// Tries a commit again until its time is over.
    async fn retry(
        &self,
        lease: &Lease,
        commit: &Commit,
        mut error: StoreError,
    ) -> Result<(), StoreError> {
        let session = self.session.as_str();
        log_repeated!(warn, session, %error, "a commit failed, and is tried again");
        let begun = Instant::now();
        let mut pauses = Pauses::default();
        loop {
            let left = self.time_left(begun);
            if left.is_zero() {
                return Err(error);
            }
            tokio::select! {
                () = sleep(pauses.next().min(left)) => {}
                // There is less time now.
                _ = self.closing.wait(), if !self.closing.initialized() => {}
            }
            match self.attempt(lease, commit, true).await {
                Err(again) if again.kind() == StoreErrorKind::Unavailable => error = again,
                Ok(()) => {
                    let seconds = begun.elapsed().as_secs_f64();
                    log_repeated!(info, session, seconds, "commits succeed again");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the time that a commit has, of which the first attempt failed at `begun`.
    fn time_left(&self, begun: Instant) -> Duration {
        let limit = self.limits.commit_timeout;
        let left = limit.saturating_sub(begun.elapsed());
        match self.closing.get() {
            None => left,
            Some(Closing { since, time }) => {
                left.min(time.saturating_sub(begun.max(*since).elapsed()))
            }
        }
    }

    /// Has the store commit once. If the commit before may have happened, asks the store first, so
    /// that no number is used twice and no event is lost. `again`: that commit was this one.
    async fn attempt(&self, lease: &Lease, commit: &Commit, again: bool) -> Result<(), StoreError> {
        let mut commit = commit.clone();
        let mut has_happened = false;
        if self.in_doubt.load(Ordering::Relaxed) {
            let stored = self.store.find(&self.session).await?;
            let stored = stored.map(|record| record.last_event);
            let committed = self.state().committed;
            if stored != Some(committed) {
                let last = commit.events.as_ref().map(|events| events.last());
                if !again || stored.is_none() || stored != last {
                    return Err(self.end(stored, committed));
                }
                // The events are there. Committing the rest shows whether the lease is still valid,
                // so that they are these and nobody else's, and does what was asked of the disk.
                commit.events = None;
                has_happened = true;
            }
        }
        self.in_doubt.store(true, Ordering::Relaxed);
        let result = self.store.commit(lease, commit).await;
        let in_doubt = |error| has_happened || leaves_doubt(error);
        let in_doubt = result.as_ref().is_err_and(in_doubt);
        self.in_doubt.store(in_doubt, Ordering::Relaxed);
        result
    }

    /// Ends the log, because the store has other events.
    fn end(&self, stored: Option<u64>, committed: u64) -> StoreError {
        let session = &self.session;
        let message = match stored {
            Some(stored) => format!(
                "expected event {committed} as the last of session {session} in the store, got \
                 event {stored}. A failed commit has happened after all: load the session again"
            ),
            None => format!("session {session} is not in the store any more"),
        };
        let error = StoreError::new(StoreErrorKind::Conflict, message);
        self.state().ended = Some(error.clone());
        error
    }
}

/// Returns whether a commit that failed may have happened.
fn leaves_doubt(error: &StoreError) -> bool {
    matches!(
        error.kind(),
        StoreErrorKind::Unavailable | StoreErrorKind::Conflict
    )
}

/// The error of a commit that may have happened: there is no hope in another attempt.
fn panicked(panic: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        format!("the store panicked: {panic}"),
    )
}
