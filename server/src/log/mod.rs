//! The events of an active session: numbered, committed, then shown to subscribers.
//!
//! An append assigns the number and returns. A task takes everything that has gathered as one
//! batch, has the store commit it, keeps it in memory and only then notifies the subscribers. At
//! the end of a turn its own task does so. While the store is unavailable, the task tries again.
//! Whoever appends waits while more than a buffer is uncommitted.

mod commit;
mod memory;
mod pauses;
mod state;

pub(crate) use memory::Memory;
pub(crate) use pauses::Pauses;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use tokio::sync::{Notify, SetOnce};

use crate::event::Batch;
use crate::limits::LogLimits;
use crate::store::{Lease, RecordChange, Store, StoreError, StoredPrompt};
use commit::Closing;
use state::{Committer, LogState};

/// Is notified of commits.
pub(crate) trait Listener: Send + Sync {
    /// There are further events to be read. Must not block.
    fn committed(&self);

    /// Events after `last` could not be committed: they do not exist, and later ones get their
    /// numbers. Called under the log's lock.
    fn rolled_back(&self, last: u64) {
        let _ = last;
    }

    /// Called after [`rolled_back`](Self::rolled_back), without the log's lock. Must not block.
    fn failed(&self, error: &StoreError) {
        let _ = error;
        self.committed();
    }
}

/// The events of one session. Clones are handles to the same log.
#[derive(Clone)]
pub(crate) struct Log(Arc<LogInner>);

struct LogInner {
    session: SessionId,
    store: Arc<dyn Store>,
    /// Set before the first append.
    lease: OnceLock<Lease>,
    limits: LogLimits,
    memory: Arc<Memory>,
    state: Mutex<LogState>,
    /// Notified when a commit has ended.
    settled: Notify,
    /// Whether the last commit may have happened although it failed. Only the committer uses it.
    in_doubt: AtomicBool,
    /// Set when the session is being closed.
    closing: SetOnce<Closing>,
    /// What it has of `memory`.
    share: memory::Share,
}

/// A period without a failed commit. What was appended before a failure is gone, so the appends
/// of a turn that began before it are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// Set when a commit has ended, with its result.
pub(crate) type Stored = SetOnce<Result<(), StoreError>>;

/// What a subscriber finds after its cursor.
pub(crate) enum Next {
    /// A batch that contains the next event, perhaps after older ones, and the last event of it that
    /// may be shown.
    Batch(Arc<Batch>, u64),
    /// Nothing yet.
    Nothing,
    /// Events up to this number are no longer kept.
    Gap(u64),
}

/// What is in memory after a cursor.
pub(crate) enum InMemory {
    /// As [`Next::Batch`].
    Batch(Arc<Batch>, u64),
    /// There are no further events yet.
    Nothing,
    /// There are, in the store only.
    NotKept,
}

impl Log {
    pub(crate) fn new(
        session: SessionId,
        store: Arc<dyn Store>,
        limits: LogLimits,
        memory: Arc<Memory>,
        last: u64,
    ) -> Self {
        let inner = Arc::new(LogInner {
            session,
            store,
            lease: OnceLock::new(),
            limits,
            memory,
            state: Mutex::new(LogState::new(last)),
            settled: Notify::new(),
            in_doubt: AtomicBool::new(false),
            closing: SetOnce::new(),
            share: memory::Share::default(),
        });
        inner.memory.add(&inner);
        Self(inner)
    }

    /// Returns the lease, once the session is in the store.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.0.lease.get()
    }

    /// Sets the lease, with which events can be committed. What was appended before waits for it.
    pub(crate) fn set_lease(&self, lease: Lease) {
        // There is one lease for as long as a session is open.
        let _ = self.0.lease.set(lease);
        self.start_commit();
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.0.state().failures)
    }

    /// Returns whether a commit has ever failed. It may have happened in the store.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.state().failures > 0
    }

    /// # Errors
    ///
    /// The store's, if a commit has failed since `epoch`.
    pub(crate) fn check(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.0.state().check(Some(epoch))
    }

    /// Returns the number of the last event, committed or not.
    pub(crate) fn last(&self) -> u64 {
        self.0.state().open.last()
    }

    /// Returns the number of the last event that is committed.
    pub(crate) fn committed(&self) -> u64 {
        self.0.state().committed
    }

    /// Calls `read` with the number of the last event, which does not change meanwhile.
    pub(crate) fn at_last<T>(&self, read: impl FnOnce(u64) -> T) -> T {
        let state = self.0.state();
        read(state.open.last())
    }

    /// Returns the number of the oldest event in memory.
    pub(crate) fn oldest_in_memory(&self) -> u64 {
        self.0.state().oldest_kept(&self.0.limits)
    }

    /// Notifies `listener` of commits from now on, as long as it lives.
    pub(crate) fn subscribe(&self, listener: Weak<dyn Listener>) {
        self.0.state().subscribe(listener);
    }

    /// Waits until there is room, then appends what `write` writes. All of it is committed
    /// together, or nothing if `write` fails.
    ///
    /// # Errors
    ///
    /// The error of `write`, or that of the store if a commit has failed since `epoch`.
    pub(crate) async fn append<T, E: From<StoreError>>(
        &self,
        epoch: Epoch,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.wait_for_room().await;
        self.append_now(Some(epoch), write)
    }

    /// Appends without waiting for room: for what ends a turn, which is small.
    pub(crate) fn append_now<T, E: From<StoreError>>(
        &self,
        epoch: Option<Epoch>,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut state = self.0.state();
        let written = state.append(epoch, write);
        self.schedule(state);
        written
    }

    /// Appends without waiting for room, and leaves the commit to the next append, to
    /// [`start_commit`](Self::start_commit), [`commit`](Self::commit) or [`flush`](Self::flush).
    pub(crate) fn append_deferred<T, E: From<StoreError>>(
        &self,
        epoch: Epoch,
        write: impl FnOnce(&mut Appender<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.state().append(Some(epoch), write)
    }

    /// Starts the commit of what was appended, if it has not begun.
    pub(crate) fn start_commit(&self) {
        self.schedule(self.0.state());
    }

    /// Commits what was appended, at once if the store can do so without a wait.
    pub(crate) fn commit_now(&self) {
        if self.lease().is_none() {
            return;
        }
        if let Some(commit) = self.0.commit_now() {
            let inner = self.0.clone();
            tokio::spawn(async move { inner.commit_waiting(commit).await });
        }
    }

    /// Commits what was appended in the task of the caller, which must not be dropped meanwhile:
    /// nobody would commit any more.
    pub(crate) async fn commit(&self) {
        // Boxed, and not kept in a variable: a turn of a store in memory has no room for it.
        let boxed = |commit| Box::pin(self.0.commit_waiting(commit));
        let waiting = self.0.commit_now().map(boxed);
        if let Some(waiting) = waiting {
            waiting.await;
        }
    }

    /// Waits while more than a buffer is uncommitted.
    pub(crate) async fn wait_for_room(&self) {
        if !self.0.has_room() {
            // Boxed, because it is rare, and every future that appends has room for it otherwise.
            Box::pin(self.0.room()).await;
        }
    }

    /// Waits until everything that was appended is committed, and all changes.
    ///
    /// # Errors
    ///
    /// The store's, if a commit has failed since `epoch`.
    pub(crate) async fn flush(&self, epoch: Epoch) -> Result<(), StoreError> {
        self.start_commit();
        let last = self.last();
        loop {
            let settled = self.0.settled.notified();
            if self.is_flushed(epoch, last)? {
                return Ok(());
            }
            settled.await;
        }
    }

    fn is_flushed(&self, epoch: Epoch, last: u64) -> Result<bool, StoreError> {
        let state = self.0.state();
        state.check(Some(epoch))?;
        // Changes without events have no number. Without a lease they wait for one.
        let is_idle =
            state.committer != Committer::Running && (!state.has_work() || self.lease().is_none());
        Ok(state.committed >= last && is_idle)
    }

    /// Gives a store that is unavailable no more than `time` from now on.
    pub(crate) fn close_within(&self, time: Duration) {
        // What was set before counts.
        let _ = self.0.closing.set(Closing::new(time));
    }

    /// Returns the error with which the log has ended: nothing more can be appended, and the session
    /// must be opened again.
    pub(crate) fn ended(&self) -> Option<StoreError> {
        self.0.state().ended.clone()
    }

    /// Starts the commit task if there is work and it does not run.
    fn schedule(&self, mut state: MutexGuard<'_, LogState>) {
        if state.committer != Committer::Nobody || !state.has_work() || self.lease().is_none() {
            return;
        }
        // Without a runtime the process is ending, and nobody would be sent the events.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        state.committer = Committer::Spawned;
        drop(state);
        let inner = self.0.clone();
        runtime.spawn(async move {
            if let Some(commit) = inner.commit_now() {
                inner.commit_waiting(commit).await;
            }
        });
    }

    /// Returns whether an event is committed.
    pub(crate) fn has_committed(&self, number: u64) -> bool {
        self.0.state().committed >= number
    }

    /// Returns what follows `after`, as far as it is in memory. `older` is what was read ahead; a
    /// batch stays there until the cursor has passed its end, for a reader may stop within it.
    pub(crate) fn in_memory(&self, after: u64, older: &mut VecDeque<Arc<Batch>>) -> InMemory {
        while older.front().is_some_and(|batch| batch.last() <= after) {
            older.pop_front();
        }
        let state = self.0.state();
        let committed = state.committed;
        if after >= committed {
            return InMemory::Nothing;
        }
        // The store may have later events: of a commit of which it is not known that it has happened,
        // or of whoever has the lease now.
        let shown = |batch: Arc<Batch>| {
            let last = batch.last().min(committed);
            InMemory::Batch(batch, last)
        };
        match older.front() {
            Some(batch) if batch.first() <= after + 1 => return shown(batch.clone()),
            // The cursor was set back.
            _ => older.clear(),
        }
        match state.find(after + 1) {
            Some(batch) if after + 1 >= state.oldest_kept(&self.0.limits) => shown(batch),
            _ => InMemory::NotKept,
        }
    }

    /// Returns what follows `after`: from memory, or from the store, which is read ahead to `older`.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn next(
        &self,
        after: u64,
        older: &mut VecDeque<Arc<Batch>>,
    ) -> Result<Next, StoreError> {
        match self.in_memory(after, older) {
            InMemory::Batch(batch, last) => return Ok(Next::Batch(batch, last)),
            InMemory::Nothing => return Ok(Next::Nothing),
            InMemory::NotKept => {}
        }
        let limit = self.0.limits.page_bytes;
        let page = self.0.store.read(&self.0.session, after, limit).await?;
        if page.oldest > after + 1 {
            return Ok(Next::Gap(page.oldest - 1));
        }
        older.extend(page.batches);
        Ok(match self.in_memory(after, older) {
            InMemory::Batch(batch, last) => Next::Batch(batch, last),
            InMemory::Nothing | InMemory::NotKept => Next::Nothing,
        })
    }
}

impl LogInner {
    fn has_room(&self) -> bool {
        self.state().uncommitted() < self.limits.uncommitted_bytes
    }

    async fn room(&self) {
        loop {
            // Created before the check: it is notified of everything from now on.
            let settled = self.settled.notified();
            if self.has_room() {
                return;
            }
            settled.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LogInner {
    fn drop(&mut self) {
        self.memory.remove(&self.share);
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.state();
        f.debug_struct("Log")
            .field("committed", &state.committed)
            .field("last", &state.open.last())
            .finish_non_exhaustive()
    }
}

/// Appends under the log's lock: the numbers are known, and nothing comes between.
pub(crate) struct Appender<'a> {
    state: &'a mut LogState,
}

impl Appender<'_> {
    /// Returns the number that the next event will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.state.open.last() + 1
    }

    /// Returns the number of the last committed event.
    pub(crate) fn committed(&self) -> u64 {
        self.state.committed
    }

    /// Appends an event and returns its number.
    ///
    /// # Errors
    ///
    /// When the value has no JSON form.
    pub(crate) fn push<T: serde::Serialize>(
        &mut self,
        event: &T,
    ) -> Result<u64, acp_sdk::runtime::EncodeError> {
        self.state
            .open
            .write(|bytes| acp_sdk::runtime::encode(event, bytes))
    }

    /// Changes the session's record in the same commit.
    pub(crate) fn change(&mut self, change: RecordChange) {
        self.state.change.merge(change);
    }

    /// Keeps a prompt that waits, in the same commit, which is on the disk when it completes.
    pub(crate) fn add_prompt(&mut self, prompt: StoredPrompt) {
        self.state.prompts.add.push(prompt);
        self.sync();
    }

    /// Removes a prompt that does not wait any more, in the same commit.
    pub(crate) fn remove_prompt(&mut self, number: u64) {
        self.state.prompts.remove(number);
    }

    /// Sets `stored` when the commit has ended.
    pub(crate) fn notify(&mut self, stored: &Arc<Stored>) {
        self.state.waiters.push(stored.clone());
    }

    /// Asks for the commit to be on the disk when it completes.
    pub(crate) fn sync(&mut self) {
        self.state.sync = true;
    }
}

#[cfg(test)]
mod tests;
