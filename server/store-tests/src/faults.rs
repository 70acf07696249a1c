//! A store that fails when a test wants it to.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, SessionOwner, SessionRecord, Store, StoreError,
    StoreErrorKind, StoreEvent, StoreFuture, StoreUsage, StoredPrompt,
};
use tokio::sync::{Notify, Semaphore};

/// A method of [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named as the methods")]
pub enum Operation {
    Create,
    Acquire,
    AcquireUnused,
    Release,
    Commit,
    Find,
    List,
    Read,
    Fork,
    Delete,
    Derived,
    KeepDerived,
    Prompts,
    Owner,
    Usage,
}

/// What happens to a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The call fails with an error of this kind.
    Fail(StoreErrorKind),
    /// The call never completes; the caller can only drop it.
    Hang,
    /// The call takes longer, by tokio's clock.
    Delay(Duration),
    /// The call waits until the gate is opened.
    Hold(Gate),
    /// The call panics, as one with a bug.
    Panic,
}

/// Whether a fault happens before or after the call took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call has no effect unless the fault lets it go on.
    Before,
    /// The call has taken effect, and its result is delayed or lost.
    After,
}

/// Holds a call until a test opens it.
#[derive(Clone, Debug)]
pub struct Gate {
    reached: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self {
            reached: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    /// Waits until a call has reached the gate.
    pub async fn reached(&self) {
        // Never closed.
        if let Ok(permit) = self.reached.acquire().await {
            permit.forget();
        }
    }

    /// Lets the call that waits, or the next one, go on.
    pub fn open(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        self.reached.add_permits(1);
        if let Ok(permit) = self.open.acquire().await {
            permit.forget();
        }
    }
}

/// Wraps a store and fails, delays or holds the calls that a test names.
///
/// Without [`inject`](Self::inject) it behaves as the store inside.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    state: Mutex<FaultState>,
    lost: Notify,
}

#[derive(Debug, Default)]
struct FaultState {
    calls: Vec<Operation>,
    injected: Vec<Injected>,
}

#[derive(Debug)]
struct Injected {
    operation: Option<Operation>,
    /// Calls until it happens; 1 for the next.
    countdown: usize,
    /// Calls in a row that it happens to.
    times: usize,
    when: When,
    fault: Fault,
}

impl<S> FaultyStore<S> {
    /// Wraps a store.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            state: Mutex::default(),
            lost: Notify::new(),
        }
    }

    /// Returns the store inside, for calls without faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Makes the `nth` call from now on (1: the next) of `operation`, or of any, meet a fault.
    ///
    /// One call meets at most one fault, the first that was injected for it.
    pub fn inject(
        &self,
        operation: impl Into<Option<Operation>>,
        nth: usize,
        when: When,
        fault: Fault,
    ) {
        self.add(operation.into(), nth, 1, when, fault);
    }

    /// Makes the next `times` calls of `operation`, or of any, meet a fault. `usize::MAX`: all until
    /// [`heal`](Self::heal).
    pub fn inject_next(
        &self,
        operation: impl Into<Option<Operation>>,
        times: usize,
        when: When,
        fault: Fault,
    ) {
        self.add(operation.into(), 1, times, when, fault);
    }

    fn add(
        &self,
        operation: Option<Operation>,
        nth: usize,
        times: usize,
        when: When,
        fault: Fault,
    ) {
        self.state().injected.push(Injected {
            operation,
            countdown: nth.max(1),
            times,
            when,
            fault,
        });
    }

    /// Completes [`Store::leases_lost`], the call that waits or the next one. The store inside keeps
    /// its leases: a test that needs them lost injects `LeaseLost` into commits.
    pub fn lose_leases(&self) {
        self.lost.notify_one();
    }

    /// Removes all faults that have not happened yet.
    pub fn heal(&self) {
        self.state().injected.clear();
    }

    /// Returns the calls so far, in the order in which they were first polled.
    pub fn calls(&self) -> Vec<Operation> {
        self.state().calls.clone()
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, operation: Operation) -> Option<(When, Fault)> {
        let mut state = self.state();
        state.calls.push(operation);
        for injected in &mut state.injected {
            if injected.operation.is_none_or(|only| only == operation) {
                injected.countdown = injected.countdown.saturating_sub(1);
            }
        }
        let mut injected = state.injected.iter();
        let due = |injected: &Injected| {
            injected.countdown == 0 && injected.operation.is_none_or(|only| only == operation)
        };
        let at = injected.position(due)?;
        let injected = &mut state.injected[at];
        injected.times = injected.times.saturating_sub(1);
        let met = (injected.when, injected.fault.clone());
        if injected.times == 0 {
            state.injected.remove(at);
        }
        Some(met)
    }

    fn call<'a, T: Send + 'a>(
        &'a self,
        operation: Operation,
        call: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T>
    where
        S: Sync,
    {
        Box::pin(async move {
            match self.next(operation) {
                None => call.await,
                Some((When::Before, fault)) => {
                    fault.happen(operation).await?;
                    call.await
                }
                Some((When::After, fault)) => {
                    let result = call.await;
                    fault.happen(operation).await?;
                    result
                }
            }
        })
    }
}

impl Fault {
    async fn happen(self, operation: Operation) -> Result<(), StoreError> {
        match self {
            Self::Fail(kind) => {
                let message = format!("injected failure of {operation:?}");
                return Err(StoreError::new(kind, message));
            }
            Self::Hang => pending().await,
            Self::Delay(time) => tokio::time::sleep(time).await,
            Self::Hold(gate) => gate.pass().await,
            Self::Panic => panic!("injected panic of {operation:?}"),
        }
        Ok(())
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        self.call(Operation::Create, self.inner.create(record))
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.call(Operation::Acquire, self.inner.acquire(session))
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.call(Operation::AcquireUnused, self.inner.acquire_unused(session))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        self.call(Operation::Release, self.inner.release(lease))
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        self.call(Operation::Commit, self.inner.commit(lease, commit))
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        self.call(Operation::Find, self.inner.find(session))
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        self.call(Operation::List, self.inner.list(query))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        let call = self.inner.read(session, after, max_bytes);
        self.call(Operation::Read, call)
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        self.call(Operation::Fork, self.inner.fork(source, up_to, target))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        self.call(Operation::Delete, self.inner.delete(session))
    }

    fn derived<'a>(&'a self, sessions: &'a [SessionId]) -> StoreFuture<'a, Vec<Option<String>>> {
        self.call(Operation::Derived, self.inner.derived(sessions))
    }

    fn keep_derived<'a>(&'a self, derived: Vec<(SessionId, String)>) -> StoreFuture<'a, ()> {
        self.call(Operation::KeepDerived, self.inner.keep_derived(derived))
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        self.call(Operation::Prompts, self.inner.prompts(session))
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        // Servers ask for it from time to time, whatever a test does.
        self.inner.abandoned(limit)
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        self.call(Operation::Owner, self.inner.owner(session))
    }

    fn leases_lost(&self) -> StoreEvent<'_> {
        Box::pin(async move {
            tokio::select! {
                () = self.lost.notified() => {}
                () = self.inner.leases_lost() => {}
            }
        })
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        self.call(Operation::Usage, self.inner.usage())
    }
}

#[cfg(test)]
mod tests;
