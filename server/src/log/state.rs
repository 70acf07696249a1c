//! What a log knows: events not committed yet, and the latest that are.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::{Appender, Epoch, Listener, Stored};
use crate::event::Batch;
use crate::limits::LogLimits;
use crate::store::{Commit, PromptChanges, RecordChange, StoreError, StoreErrorKind};

/// Who hands events to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Committer {
    Nobody,
    /// A task that has not begun. Another one may be first.
    Spawned,
    Running,
}

pub(super) struct LogState {
    /// Appended, and not handed to the store.
    pub(super) open: Batch,
    pub(super) change: RecordChange,
    pub(super) prompts: PromptChanges,
    pub(super) sync: bool,
    /// Those who wait until the open events and changes are committed.
    pub(super) waiters: Vec<Arc<Stored>>,
    /// The same for those that the store is committing.
    waiters_in_flight: Vec<Arc<Stored>>,
    /// Prompts that the store is removing.
    removed_in_flight: Vec<u64>,
    /// Prompts whose removal has failed. They have ended all the same: the next commit removes them.
    to_remove: Vec<u64>,
    /// Bytes that the store is committing.
    in_flight: usize,
    pub(super) committer: Committer,
    /// The latest committed batches, without holes.
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    kept_events: usize,
    pub(super) committed: u64,
    pub(super) failures: u64,
    failure: Option<StoreError>,
    /// Why nothing can be appended any more.
    pub(super) ended: Option<StoreError>,
    pub(super) listeners: Vec<Weak<dyn Listener>>,
}

/// A batch, with what is asked of it often: older batches are rarely in the processor's cache.
struct Kept {
    first: u64,
    last: u64,
    events: usize,
    bytes: usize,
    batch: Arc<Batch>,
}

impl LogState {
    pub(super) fn new(last: u64) -> Self {
        Self {
            open: Batch::new(last + 1),
            change: RecordChange::default(),
            prompts: PromptChanges::default(),
            sync: false,
            waiters: Vec::new(),
            waiters_in_flight: Vec::new(),
            removed_in_flight: Vec::new(),
            to_remove: Vec::new(),
            in_flight: 0,
            committer: Committer::Nobody,
            kept: VecDeque::new(),
            kept_bytes: 0,
            kept_events: 0,
            committed: last,
            failures: 0,
            failure: None,
            ended: None,
            listeners: Vec::new(),
        }
    }

    /// # Errors
    ///
    /// The store's error, if a commit has failed since the epoch, or the log has ended.
    pub(super) fn check(&self, epoch: Option<Epoch>) -> Result<(), StoreError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        match (&self.failure, epoch) {
            (Some(error), Some(Epoch(epoch))) if epoch != self.failures => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Appends what `write` writes, or nothing if it fails.
    pub(super) fn append<T, E: From<StoreError>>(
        &mut self,
        epoch: Option<Epoch>,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.check(epoch)?;
        let before = self.open.last();
        let written = write(&mut Appender { state: self });
        if written.is_err() {
            self.open.truncate(before);
        }
        written
    }

    /// Returns those who wait for the commit that has ended; for one that has failed, also those who wait
    /// for the next one, for its events and changes are gone.
    pub(super) fn take_waiters(&mut self, has_failed: bool) -> Vec<Arc<Stored>> {
        let mut waiters = std::mem::take(&mut self.waiters_in_flight);
        if has_failed {
            waiters.append(&mut self.waiters);
        }
        waiters
    }

    pub(super) fn uncommitted(&self) -> usize {
        self.in_flight + self.open.bytes()
    }

    pub(super) fn has_work(&self) -> bool {
        !self.open.is_empty()
            || !self.change.is_empty()
            || !self.prompts.is_empty()
            || self.sync
            || !self.waiters.is_empty()
    }

    /// Takes what is to be committed next; `None` ends the commit task.
    pub(super) fn take(&mut self, limits: &LogLimits) -> Option<Commit> {
        if !self.has_work() {
            self.committer = Committer::Nobody;
            return None;
        }
        let next = Batch::new(self.open.last() + 1);
        let batch = std::mem::replace(&mut self.open, next);
        self.in_flight = batch.bytes();
        let last = batch.last();
        let mut prompts = std::mem::take(&mut self.prompts);
        prompts.remove.append(&mut self.to_remove);
        self.removed_in_flight.clone_from(&prompts.remove);
        self.waiters_in_flight = std::mem::take(&mut self.waiters);
        let timed = |batch: Batch| Arc::new(batch.with_time(Some(crate::clock::milliseconds())));
        Some(Commit {
            events: (!batch.is_empty()).then(|| timed(batch)),
            change: std::mem::take(&mut self.change),
            prompts,
            trim_before: limits
                .max_events
                .map(|most| (last + 1).saturating_sub(most)),
            sync: std::mem::take(&mut self.sync),
        })
    }

    /// Keeps a committed batch in memory, and forgets the oldest ones beyond the limits.
    pub(super) fn keep(&mut self, batch: Option<Arc<Batch>>, limits: &LogLimits) {
        self.in_flight = 0;
        self.removed_in_flight.clear();
        let Some(batch) = batch else { return };
        let kept = Kept {
            first: batch.first(),
            last: batch.last(),
            events: batch.len(),
            bytes: batch.bytes(),
            batch,
        };
        self.committed = kept.last;
        self.kept_bytes += kept.bytes;
        self.kept_events += kept.events;
        self.kept.push_back(kept);
        while let Some(oldest) = self.kept.front() {
            let events = self.kept_events - oldest.events;
            // The limit is what must stay, so whole batches go only while enough remains.
            let enough = events >= limits.memory_events || self.kept_bytes > limits.memory_bytes;
            if !enough || self.kept.len() == 1 {
                break;
            }
            self.kept_bytes -= oldest.bytes;
            self.kept_events = events;
            self.kept.pop_front();
        }
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Keeps no committed events in memory: the store has them.
    pub(super) fn forget(&mut self) {
        self.kept = VecDeque::new();
        (self.kept_bytes, self.kept_events) = (0, 0);
    }

    /// Removes what could not be committed: nobody has seen it.
    pub(super) fn fail(&mut self, error: StoreError) {
        self.in_flight = 0;
        self.open = Batch::new(self.committed + 1);
        self.change = RecordChange::default();
        self.to_remove.append(&mut self.removed_in_flight);
        self.to_remove.append(&mut self.prompts.remove);
        self.prompts = PromptChanges::default();
        self.sync = false;
        self.failures += 1;
        if error.kind() == StoreErrorKind::LeaseLost {
            self.ended = Some(error.clone());
        }
        self.failure = Some(error);
    }

    /// Returns the number of the oldest event in memory that the session still has.
    pub(super) fn oldest_kept(&self, limits: &LogLimits) -> u64 {
        let end = self.committed + 1;
        let oldest = self.kept.front().map_or(end, |kept| kept.first);
        // The store has removed the others, and memory has whole batches.
        oldest.max(limits.max_events.map_or(1, |most| end.saturating_sub(most)))
    }

    /// Returns the batch in memory that contains an event.
    pub(super) fn find(&self, number: u64) -> Option<Arc<Batch>> {
        // Most of those who ask have read everything but the latest batch.
        let latest = self.kept.back()?;
        let kept = if latest.first <= number {
            latest
        } else {
            let at = self.kept.partition_point(|kept| kept.last < number);
            self.kept.get(at)?
        };
        (kept.first <= number && number <= kept.last).then(|| kept.batch.clone())
    }

    pub(super) fn subscribe(&mut self, listener: Weak<dyn Listener>) {
        self.listeners.retain(|old| old.strong_count() > 0);
        self.listeners.push(listener);
    }

    pub(super) fn listeners(&self) -> Vec<Arc<dyn Listener>> {
        self.listeners.iter().filter_map(Weak::upgrade).collect()
    }
}
