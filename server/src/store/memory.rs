//! Sessions in memory, gone with the process.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::Json;
use acp_sdk::v1::SessionId;

use super::log::Log;
use super::{Event, SessionRecord, Store, StoreError, StoreFuture};

/// Sessions in memory, bounded in number and bytes.
///
/// A session that grows beyond its bound forgets its oldest events. When all sessions
/// together grow beyond theirs, the largest one forgets half of its events.
#[derive(Debug)]
pub struct MemoryStore {
    session_bytes: usize,
    total_bytes: usize,
    max_sessions: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    created: u64,
    bytes: usize,
    /// By number, so that listing goes in the order of creation.
    sessions: BTreeMap<u64, Kept>,
    numbers: HashMap<SessionId, u64>,
}

#[derive(Debug)]
struct Kept {
    record: SessionRecord,
    log: Log,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with the default bounds, as each method states them.
    #[must_use]
    pub fn new() -> Self {
        Self {
            session_bytes: 16 << 20,
            total_bytes: 256 << 20,
            max_sessions: 10_000,
            table: Mutex::default(),
        }
    }

    /// The most bytes of events that a session keeps (default 16 MiB).
    #[must_use]
    pub fn session_bytes(mut self, bytes: usize) -> Self {
        self.session_bytes = bytes;
        self
    }

    /// The most bytes of events that are kept of all sessions together (default 256 MiB).
    #[must_use]
    pub fn total_bytes(mut self, bytes: usize) -> Self {
        self.total_bytes = bytes;
        self
    }

    /// The most sessions; creating another is an error (default 10,000).
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, session: &SessionRecord) -> Result<u64, StoreError> {
        let mut table = self.table();
        if table.numbers.contains_key(&session.id) {
            return Err("there is a session of this id".to_owned());
        }
        if table.sessions.len() >= self.max_sessions {
            return Err(format!(
                "there are {} sessions, which is the most; delete one first",
                table.sessions.len()
            ));
        }
        table.created += 1;
        let number = table.created;
        let record = SessionRecord {
            number,
            ..session.clone()
        };
        table.numbers.insert(session.id.clone(), number);
        let log = Log::new(self.session_bytes);
        table.sessions.insert(number, Kept { record, log });
        Ok(number)
    }

    fn push(&self, session: &SessionId, update: &Json) -> Result<u64, StoreError> {
        let mut table = self.table();
        let log = &mut table.kept_mut(session).ok_or_else(no_session)?.log;
        let before = log.bytes();
        let number = log.push(update.get());
        while log.bytes() > self.session_bytes && log.forget() {}
        let after = log.bytes();
        table.bytes = table.bytes + after - before;
        if table.bytes > self.total_bytes {
            table.forget_half_of_the_largest();
        }
        Ok(number)
    }
}

impl Table {
    fn kept(&self, session: &SessionId) -> Option<&Kept> {
        self.sessions.get(self.numbers.get(session)?)
    }

    fn kept_mut(&mut self, session: &SessionId) -> Option<&mut Kept> {
        self.sessions.get_mut(self.numbers.get(session)?)
    }

    /// Half at once, so that looking for the largest session is rare.
    fn forget_half_of_the_largest(&mut self) {
        let logs = self.sessions.values_mut().map(|kept| &mut kept.log);
        let Some(largest) = logs.max_by_key(|log| log.bytes()) else {
            return;
        };
        let before = largest.bytes();
        while largest.bytes() > before / 2 && largest.forget() {}
        self.bytes -= before - largest.bytes();
    }

    fn remove(&mut self, session: &SessionId) -> bool {
        let number = self.numbers.remove(session);
        let Some(kept) = number.and_then(|number| self.sessions.remove(&number)) else {
            return false;
        };
        self.bytes -= kept.log.bytes();
        true
    }
}

fn no_session() -> StoreError {
    "there is no such session".to_owned()
}

impl Store for MemoryStore {
    fn create<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, u64> {
        Box::pin(ready(self.add(session)))
    }

    fn save<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, ()> {
        if let Some(kept) = self.table().kept_mut(&session.id) {
            let number = kept.record.number;
            kept.record = session.clone();
            kept.record.number = number;
        }
        Box::pin(ready(Ok(())))
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        let found = self.table().kept(session).map(|kept| kept.record.clone());
        Box::pin(ready(Ok(found)))
    }

    fn list<'a>(
        &'a self,
        cwd: Option<&'a str>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionRecord>> {
        let table = self.table();
        let page = table
            .sessions
            .range(..before.unwrap_or(u64::MAX))
            .rev()
            .map(|(_, kept)| &kept.record)
            .filter(|record| cwd.is_none_or(|cwd| record.cwd == cwd))
            .take(limit)
            .cloned()
            .collect();
        Box::pin(ready(Ok(page)))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(ready(Ok(self.table().remove(session))))
    }

    fn append<'a>(&'a self, session: &'a SessionId, update: &'a Json) -> StoreFuture<'a, u64> {
        Box::pin(ready(self.push(session, update)))
    }

    fn replay<'a>(&'a self, session: &'a SessionId, after: u64) -> StoreFuture<'a, Vec<Event>> {
        let table = self.table();
        let kept = table.kept(session).ok_or_else(no_session);
        Box::pin(ready(kept.and_then(|kept| kept.log.after(after))))
    }

    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, u64> {
        let last = self.table().kept(session).map(|kept| kept.log.last());
        Box::pin(ready(last.ok_or_else(no_session)))
    }
}
