//! One store for several servers.

use std::sync::Arc;

use acp_sdk::v1::SessionId;

use super::{
    Commit, EventPage, Lease, ListQuery, NodeStatistics, SessionOwner, SessionRecord, Store,
    StoreError, StoreEvent, StoreFuture, StoreUsage, StoredPrompt,
};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        (**self).create(record)
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        (**self).acquire(session)
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        (**self).acquire_unused(session)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        (**self).release(lease)
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        (**self).commit(lease, commit)
    }

    fn commit_now(&self, lease: &Lease, commit: &Commit) -> Option<Result<(), StoreError>> {
        (**self).commit_now(lease, commit)
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        (**self).find(session)
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        (**self).list(query)
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        (**self).read(session, after, max_bytes)
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        (**self).prompts(session)
    }

    fn derived<'a>(&'a self, sessions: &'a [SessionId]) -> StoreFuture<'a, Vec<Option<String>>> {
        (**self).derived(sessions)
    }

    fn keep_derived<'a>(&'a self, derived: Vec<(SessionId, String)>) -> StoreFuture<'a, ()> {
        (**self).keep_derived(derived)
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        (**self).fork(source, up_to, target)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        (**self).delete(session)
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        (**self).owner(session)
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        (**self).abandoned(limit)
    }

    fn leases_lost(&self) -> StoreEvent<'_> {
        (**self).leases_lost()
    }

    fn node_statistics(&self) -> StoreFuture<'_, Option<NodeStatistics>> {
        (**self).node_statistics()
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        (**self).usage()
    }
}
