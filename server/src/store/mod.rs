//! Where sessions and their events are kept.
//!
//! A store knows records (what a session is besides its conversation) and [batches](Batch) of
//! numbered events. It does not know what an event means.

mod error;
mod memory;
mod owner;
pub(crate) mod page;
mod prompts;
mod reading;
mod record;
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use owner::{NodeStatistics, NodesSeen, SessionOwner};
pub use prompts::{PromptChanges, StoredPrompt};
pub use reading::Records;
pub use reading::{Page, Pages};
pub use record::{RecordChange, SessionRecord};
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteOptions, SqliteStore, StoreCheck};

use std::pin::Pin;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

use crate::event::Batch;

/// The future of a store's operation.
pub type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = std::result::Result<T, StoreError>> + Send + 'a>>;

/// The future of an event that concerns a whole store.
pub type StoreEvent<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The right to write to a session.
///
/// A store gives each lease of a session a higher token than the one before, and refuses writes
/// with an older token, so that a process that lost its lease can do no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The session.
    pub session: SessionId,
    /// Rises with each lease of the session.
    pub token: u64,
}

impl Lease {
    /// Creates a lease; for implementations of stores.
    pub fn new(session: SessionId, token: u64) -> Self {
        Self { session, token }
    }
}

/// Events and changes that are written together, or not at all.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Commit {
    /// Events; the first number must follow the last one that the session has.
    pub events: Option<Arc<Batch>>,
    /// Changes of the record.
    pub change: RecordChange,
    /// Prompts that wait for their turns from now on, and those that do not any more.
    pub prompts: PromptChanges,
    /// Removes the session's events before this number, at most all that it has then. Numbers of
    /// later events go on after the last one.
    pub trim_before: Option<u64>,
    /// Whether the commit must be on the disk when it completes. Without it, it survives the end
    /// of the process, but may not survive the loss of power.
    pub sync: bool,
}

/// Which sessions to list. [`Server::stored_sessions`](crate::Server::stored_sessions) lists all, page
/// by page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListQuery {
    /// Only sessions that work in this directory.
    pub cwd: Option<String>,
    /// Only the session of this name.
    pub name: Option<String>,
    /// Continues after the session with this activity and id, the last of the page before.
    pub after: Option<(String, SessionId)>,
    /// Returns the sessions in the opposite order: the oldest activity first.
    pub oldest_first: bool,
    /// The most sessions to return (default: 100).
    pub limit: usize,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            cwd: None,
            name: None,
            after: None,
            oldest_first: false,
            limit: 100,
        }
    }
}

/// How much a store keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreUsage {
    /// Sessions.
    pub sessions: u64,
    /// Events of all sessions.
    pub events: u64,
    /// Bytes of sessions and events, with what the store needs to find them.
    pub used_bytes: u64,
    /// Bytes of the store's files, with logs and with space that is free for later events; 0 for
    /// a store without files.
    pub disk_bytes: u64,
}

/// A part of a session's events.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct EventPage {
    /// Batches in order. Events at or below the number that was asked for may come first. None
    /// only if there are no further events.
    pub batches: Vec<Arc<Batch>>,
    /// Number of the oldest event that the session still has, as
    /// [`SessionRecord::oldest_event`]; 1 unless some were removed.
    pub oldest: u64,
    /// Number of the last event of the session; 0 before the first.
    pub last: u64,
}

/// Keeps sessions and their events.
///
/// # Contract
///
/// - An operation happens completely or not at all, also when its future is dropped before it
///   completes.
/// - When [`commit`](Self::commit) completes, every later call sees what it wrote, and it survives
///   the end of the process if the store outlives processes at all.
/// - Any number of calls run at the same time.
/// - A session has at most one valid lease. Writing needs it; reading, listing and forking do not.
/// - Sessions are listed by their last activity, the latest first, then by id.
///
/// The crate `acp-store-tests` tests these rules for any implementation.
pub trait Store: Send + Sync + 'static {
    /// Adds a session without events and leases it to this process.
    ///
    /// # Errors
    ///
    /// `Conflict` when the id or the name is taken, `Full` when the store takes no more sessions.
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease>;

    /// Leases a session to this process.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such session; `InUse` while another process, or another
    /// instance of the store, has a lease. Its [`owner`](StoreError::owner) is the address of that
    /// instance, if it has one.
    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)>;

    /// Leases a session that nobody uses. Unlike [`acquire`](Self::acquire) it never ends the lease
    /// of another user of this instance.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such session; `InUse` while it has a valid lease.
    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)>;

    /// Gives a lease back. A lease that is no longer valid is ignored.
    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()>;

    /// Appends events and changes the record, in one step.
    ///
    /// The server repeats a commit that failed with `Unavailable`. It may have happened: the server
    /// then asks for [`last_event`](SessionRecord::last_event) with [`find`](Self::find), and leaves
    /// out events that the session has. A commit that has failed never happens later.
    ///
    /// # Errors
    ///
    /// `LeaseLost` when the lease is no longer valid, `Conflict` when the events do not follow the
    /// last one, `Full` when the store has no space. Any other error than `Unavailable` means that nothing was
    /// written.
    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()>;

    /// As [`commit`](Self::commit), by a store that never waits, such as one in memory. `None`, the
    /// default, means that nothing was done: the server calls [`commit`](Self::commit).
    fn commit_now(&self, lease: &Lease, commit: &Commit) -> Option<Result<(), StoreError>> {
        let _ = (lease, commit);
        None
    }

    /// Returns a session's record; `None` if there is no such session.
    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>>;

    /// Returns sessions by their last activity, the latest first unless the query says otherwise.
    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>>;

    /// Returns events after the number `after`, of about `max_bytes` in all and at least one. If
    /// the next ones were removed, the page begins with the oldest that the session has.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such session.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage>;

    /// Returns the prompts that [`commit`](Self::commit) has added to a session and not removed, in the
    /// order of their numbers; none if there is no such session. By default none: the store does not
    /// keep them, and they are lost with their process.
    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        let _ = session;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Adds the session `target` with the events of `source` up to the number `up_to` (default, and
    /// if there are fewer: all) and leases it to this process. Numbers are kept; the store sets
    /// `last_event`, `oldest_event` and `forked_from`. Prompts of the source are not those of the fork.
    ///
    /// # Errors
    ///
    /// `NotFound` when there is no such source; otherwise as [`create`](Self::create).
    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease>;

    /// Removes a session, its events and its prompts; `false` if there is none. A lease of this process ends.
    ///
    /// # Errors
    ///
    /// `InUse` while another process has a lease.
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool>;

    /// Returns what [`keep_derived`](Self::keep_derived) has kept of sessions, in their order; `None`
    /// where there is nothing. By default there never is.
    fn derived<'a>(&'a self, sessions: &'a [SessionId]) -> StoreFuture<'a, Vec<Option<String>>> {
        let nothing = sessions.iter().map(|_| None).collect();
        Box::pin(std::future::ready(Ok(nothing)))
    }

    /// Keeps a text that was derived from the events of each of these sessions, in place of the one
    /// before, until the session is deleted. It can be made again at any time, so a store may lose it.
    /// Needs no lease; sessions that do not exist are left out. By default nothing is kept.
    fn keep_derived<'a>(&'a self, derived: Vec<(SessionId, String)>) -> StoreFuture<'a, ()> {
        drop(derived);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns who has the valid lease of a session; `None` if nobody has one, or if there is no
    /// such session. By default always `None`: the instances of the store have no addresses.
    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        let _ = session;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns up to `limit` sessions that no instance has leased and that must be opened although nobody
    /// asks for them: prompts wait in them, or a turn has begun and not ended. Their instance was killed,
    /// or has ended. In no order, so that several instances that ask begin with different ones. By default
    /// `None`: the store ends with its process. A store of one machine may leave out sessions in which no
    /// prompt waits.
    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        let _ = limit;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Completes when the leases that this instance gave out have ended all together, because it
    /// could not renew them. By default never.
    ///
    /// Every commit with one of them fails with `LeaseLost` from then on, but other nodes may not
    /// have the sessions yet: the caller stops their turns first. Leases that are acquired after
    /// that are valid. The caller calls it in a loop. An event between two calls completes the
    /// second one at once; several before a call are one.
    fn leases_lost(&self) -> StoreEvent<'_> {
        Box::pin(std::future::pending())
    }

    /// Returns numbers of this instance as one of several nodes, also while the store does not answer. By
    /// default `None`: it is alone.
    fn node_statistics(&self) -> StoreFuture<'_, Option<NodeStatistics>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns how much the store keeps. May inspect every session.
    fn usage(&self) -> StoreFuture<'_, StoreUsage>;
}
