//! The store as one node sees it: what it costs in queries, and who may have a session.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, SessionOwner, SessionRecord, Store, StoreError,
    StoreEvent, StoreFuture, StoreUsage, StoredPrompt,
};

use super::database::{Database, lock};

pub(super) struct StoreOfNode {
    pub(super) database: Arc<Database>,
    pub(super) node: usize,
}

impl StoreOfNode {
    async fn query(&self) -> Result<(), StoreError> {
        self.database.query(self.node).await
    }
}

impl std::fmt::Debug for StoreOfNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the store of node {}", self.node)
    }
}

impl Store for StoreOfNode {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        Box::pin(async move {
            self.query().await?;
            let lease = self.database.store.create(record).await?;
            self.database.own(&record.id, self.node);
            Ok(lease)
        })
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(async move {
            self.query().await?;
            if let Some(owner) = self.database.owner(session)
                && owner != self.node
            {
                lock(&self.database.load).late += 1;
                let owner = SessionOwner::new(None, false, Duration::ZERO);
                return Err(StoreError::in_use_by(session, &owner));
            }
            self.database.own(session, self.node);
            self.database.store.acquire(session).await
        })
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.acquire(session)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.query().await?;
            self.database.free(&lease.session, self.node);
            self.database.store.release(lease).await
        })
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.query().await?;
            match self.database.owner(&lease.session) {
                Some(owner) if owner == self.node => {}
                _ => return Err(StoreError::lost_lease(&lease.session)),
            }
            self.database.store.commit(lease, commit).await
        })
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        Box::pin(async move {
            self.query().await?;
            self.database.store.find(session).await
        })
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        Box::pin(async move {
            self.query().await?;
            self.database.store.list(query).await
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        Box::pin(async move {
            self.query().await?;
            self.database.store.read(session, after, max_bytes).await
        })
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        Box::pin(async move {
            self.query().await?;
            self.database.store.prompts(session).await
        })
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        self.database.store.fork(source, up_to, target)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        self.database.store.delete(session)
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        self.database.store.usage()
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        Box::pin(async move {
            self.query().await?;
            let owner = self.database.owner(session);
            let owner =
                owner.map(|node| SessionOwner::new(None, node == self.node, Duration::ZERO));
            Ok(owner)
        })
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        Box::pin(async move {
            self.query().await?;
            let mut abandoned = lock(&self.database.begun).clone();
            abandoned.retain(|session| self.database.owner(session).is_none());
            // In no order, as in the database.
            let first = self.database.random(abandoned.len());
            abandoned.rotate_left(first);
            abandoned.truncate(limit);
            Ok(Some(abandoned))
        })
    }

    fn leases_lost(&self) -> StoreEvent<'_> {
        Box::pin(self.database.leases_lost(self.node))
    }
}
