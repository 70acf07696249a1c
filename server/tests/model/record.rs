//! A store that remembers what was committed, apart from the store inside: the log of the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use acp_sdk::v1::SessionId;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, MemoryStore, SessionRecord, Store, StoreError,
    StoreFuture, StoreUsage,
};
use serde_json::Value;

/// An event as it was committed.
#[derive(Debug)]
pub struct Entry {
    pub text: String,
    pub value: Value,
}

impl Entry {
    /// Returns the kind of an update, or of an event that is none.
    pub fn kind(&self) -> &str {
        let update = self.value["sessionUpdate"].as_str();
        let kind = update.or_else(|| self.value["event"].as_str());
        kind.unwrap_or_default()
    }

    /// Returns the text of a chunk.
    pub fn said(&self) -> &str {
        self.value["content"]["text"].as_str().unwrap_or_default()
    }
}

/// Keeps the events of deleted sessions, too.
#[derive(Default)]
pub struct Recorder {
    inner: MemoryStore,
    logs: Mutex<Logs>,
}

type Logs = BTreeMap<SessionId, Arc<Vec<Arc<Entry>>>>;

impl Recorder {
    /// Returns the committed events of a session; the first has the number 1.
    pub fn log(&self, session: &SessionId) -> Arc<Vec<Arc<Entry>>> {
        let logs = self.logs.lock().unwrap();
        logs.get(session).cloned().unwrap_or_default()
    }

    fn committed(logs: &mut Logs, lease: &Lease, commit: &Commit) {
        let Some(batch) = &commit.events else { return };
        let log = Arc::make_mut(logs.entry(lease.session.clone()).or_default());
        for number in batch.first()..=batch.last() {
            assert_eq!(number, log.len() as u64 + 1, "numbers have no holes");
            let text = batch.get(number).unwrap().to_owned();
            let value = serde_json::from_str(&text).unwrap();
            log.push(Arc::new(Entry { text, value }));
        }
    }
}

impl Store for Recorder {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        self.inner.create(record)
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.inner.acquire(session)
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        self.inner.acquire_unused(session)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        self.inner.release(lease)
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.commit_now(lease, &commit).unwrap() })
    }

    fn commit_now(&self, lease: &Lease, commit: &Commit) -> Option<Result<(), StoreError>> {
        // Another server may commit right after this one.
        let mut logs = self.logs.lock().unwrap();
        let result = self.inner.commit_now(lease, commit)?;
        if result.is_ok() {
            Self::committed(&mut logs, lease, commit);
        }
        Some(result)
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        self.inner.find(session)
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        self.inner.list(query)
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        self.inner.read(session, after, max_bytes)
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        self.inner.fork(source, up_to, target)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        self.inner.delete(session)
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        self.inner.usage()
    }
}
