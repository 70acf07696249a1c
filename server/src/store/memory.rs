//! Sessions in memory, gone with the process.

mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;

use self::table::{Limits, Table};
use super::{
    Commit, EventPage, Lease, ListQuery, SessionRecord, Store, StoreError, StoreFuture, StoreUsage,
    StoredPrompt,
};

/// Sessions in memory, bounded in number and bytes.
///
/// Batches are kept as they were committed, without a copy; forks share them. The store removes no
/// events to make room: a full store refuses further ones with
/// [`Full`](super::StoreErrorKind::Full).
///
/// One value is one owner of leases, whatever the number of its users: acquiring a session a
/// second time succeeds and invalidates the first lease.
#[derive(Debug, Default)]
pub struct MemoryStore {
    limits: Limits,
    table: Mutex<Table>,
}

impl MemoryStore {
    /// Creates an empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum bytes of all events, records and prompts together (default 1 GiB).
    ///
    /// Events that forks share count once for each of them.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets the maximum number of sessions (default 100,000).
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.limits.sessions = sessions;
        self
    }

    /// Sets the maximum bytes of a record (default 1 MiB): id, name, directories, title,
    /// settings and the handler's data.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.limits.record_bytes = bytes;
        self
    }

    /// Locks the table. A panic under the lock leaves it consistent: every change is checked
    /// before the first member is written.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        Box::pin(async move { self.table().create(&self.limits, record) })
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(async move { self.table().acquire(session) })
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(async move { self.table().acquire_unused(session) })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.table().release(lease);
            Ok(())
        })
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.table().commit(&self.limits, lease, &commit) })
    }

    fn commit_now(&self, lease: &Lease, commit: &Commit) -> Option<Result<(), StoreError>> {
        Some(self.table().commit(&self.limits, lease, commit))
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        Box::pin(async move { Ok(self.table().find(session)) })
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        Box::pin(async move { Ok(self.table().list(query)) })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        Box::pin(async move { self.table().read(session, after, max_bytes) })
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        Box::pin(async move { Ok(self.table().prompts(session)) })
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        Box::pin(async move { self.table().fork(&self.limits, source, up_to, target) })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.table().delete(session)) })
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        Box::pin(async move { Ok(self.table().usage()) })
    }
}
