//! The memory that the logs of all sessions share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::LogInner;

/// Bounds the committed events that all logs keep in memory together.
///
/// Beyond the limit, the logs with the oldest commits keep none: their store has the events.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    /// Bytes of all logs.
    bytes: AtomicUsize,
    /// Counts commits.
    commits: AtomicU64,
    logs: Mutex<Logs>,
}

/// Taken when a log comes into being and when memory is short, never for a commit.
#[derive(Debug, Default)]
struct Logs {
    all: Vec<Weak<LogInner>>,
    /// The number of logs at which those that have gone are removed.
    sweep_at: usize,
}

/// What a log has of the memory.
#[derive(Debug, Default)]
pub(super) struct Share {
    bytes: AtomicUsize,
    /// The number of its latest commit.
    commit: AtomicU64,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            bytes: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
            logs: Mutex::default(),
        })
    }

    pub(super) fn add(&self, log: &Arc<LogInner>) {
        let mut logs = self.logs();
        if logs.all.len() >= logs.sweep_at {
            logs.all.retain(|log| log.strong_count() > 0);
            logs.sweep_at = logs.all.len() * 2 + 16;
        }
        logs.all.push(Arc::downgrade(log));
    }

    /// A log has committed and keeps so many bytes now. Must be called without a log's lock.
    pub(super) fn committed(&self, log: &LogInner, bytes: usize) {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed);
        log.share.commit.store(commit, Ordering::Relaxed);
        if self.set(&log.share, bytes) > self.limit {
            self.make_room();
        }
    }

    /// A log has gone.
    pub(super) fn remove(&self, share: &Share) {
        self.set(share, 0);
    }

    /// Returns the bytes of all logs.
    fn set(&self, share: &Share, bytes: usize) -> usize {
        let before = share.bytes.swap(bytes, Ordering::Relaxed);
        if bytes >= before {
            let added = bytes - before;
            self.bytes.fetch_add(added, Ordering::Relaxed) + added
        } else {
            let removed = before - bytes;
            self.bytes.fetch_sub(removed, Ordering::Relaxed) - removed
        }
    }

    /// Has the logs with the oldest commits forget theirs until the others are within the limit.
    /// A little more is freed, so that not every commit inspects all logs.
    fn make_room(&self) {
        let enough = self.limit - self.limit / 16;
        let mut logs: Vec<_> = self.logs().all.iter().filter_map(Weak::upgrade).collect();
        logs.retain(|log| log.share.bytes.load(Ordering::Relaxed) > 0);
        logs.sort_by_cached_key(|log| log.share.commit.load(Ordering::Relaxed));
        for log in logs {
            if self.bytes.load(Ordering::Relaxed) <= enough {
                return;
            }
            let mut state = log.state();
            state.forget();
            self.set(&log.share, 0);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
