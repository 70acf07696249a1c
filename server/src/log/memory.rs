//! The memory that the logs of all sessions share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Inner;

/// Bounds the committed events that all logs keep in memory together.
///
/// Beyond the limit, the logs with the oldest commits keep none: their store has the events.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Bytes of all logs.
    bytes: usize,
    /// Counts commits.
    commits: u64,
    logs: HashMap<LogId, Share>,
    by_commit: BTreeMap<u64, LogId>,
}

/// Names a log by its address, as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LogId(usize);

#[derive(Debug)]
struct Share {
    log: Weak<Inner>,
    bytes: usize,
    commit: u64,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            table: Mutex::default(),
        })
    }

    /// A log has committed and keeps so many bytes now. Must be called without a log's lock.
    pub(super) fn committed(&self, log: &Arc<Inner>, bytes: usize) {
        let idle = {
            let mut table = self.table();
            table.commits += 1;
            let (id, commit) = (id(log), table.commits);
            table.remove(id);
            table.bytes += bytes;
            table.by_commit.insert(commit, id);
            let log = Arc::downgrade(log);
            table.logs.insert(id, Share { log, bytes, commit });
            table.take_beyond(self.limit)
        };
        for log in idle.iter().filter_map(Weak::upgrade) {
            log.state().forget();
        }
    }

    /// A log has gone.
    pub(super) fn remove(&self, log: &Inner) {
        self.table().remove(LogId(std::ptr::from_ref(log).addr()));
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.table().bytes
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn remove(&mut self, id: LogId) -> Option<Share> {
        let share = self.logs.remove(&id)?;
        self.by_commit.remove(&share.commit);
        self.bytes -= share.bytes;
        Some(share)
    }

    /// Takes out the logs with the oldest commits until the others are within the limit.
    fn take_beyond(&mut self, limit: usize) -> Vec<Weak<Inner>> {
        let mut taken = Vec::new();
        while self.bytes > limit {
            let Some((_, id)) = self.by_commit.pop_first() else {
                break;
            };
            taken.extend(self.remove(id).map(|share| share.log));
        }
        taken
    }
}

fn id(log: &Arc<Inner>) -> LogId {
    LogId(Arc::as_ptr(log).addr())
}
