//! One store for several runtimes.

use std::sync::Arc;

use acp_sdk::Json;
use acp_sdk::v1::SessionId;

use super::{Event, SessionRecord, Store, StoreFuture};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn create<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, u64> {
        (**self).create(session)
    }

    fn save<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, ()> {
        (**self).save(session)
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        (**self).find(session)
    }

    fn list<'a>(
        &'a self,
        cwd: Option<&'a str>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionRecord>> {
        (**self).list(cwd, before, limit)
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        (**self).delete(session)
    }

    fn append<'a>(&'a self, session: &'a SessionId, update: &'a Json) -> StoreFuture<'a, u64> {
        (**self).append(session, update)
    }

    fn replay<'a>(&'a self, session: &'a SessionId, after: u64) -> StoreFuture<'a, Vec<Event>> {
        (**self).replay(session, after)
    }

    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, u64> {
        (**self).last(session)
    }
}
