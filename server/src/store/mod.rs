//! Where sessions and their events are kept.
//!
//! An event is an update of a session with a number: 1, 2, 3 and so on in the order in which
//! the client was told. Loading a session replays its events, so a store that survives the
//! process lets sessions survive it too.

mod log;
mod memory;
mod shared;

pub use memory::MemoryStore;

use std::collections::BTreeMap;
use std::pin::Pin;

use acp_sdk::Json;
use acp_sdk::v1::{SessionConfigOptionValue, SessionId};

/// What is known of a session besides its events.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// Its id, unique in the store.
    pub id: SessionId,
    /// Its place in the order of creation, counted from 1. Given by [`Store::create`].
    pub number: u64,
    /// The working directory, absolute. It never changes.
    pub cwd: String,
    /// Further roots, absolute.
    pub additional_directories: Vec<String>,
    /// The title, once it has one.
    pub title: Option<String>,
    /// The end of the last turn, or the creation; ISO 8601 in UTC.
    pub updated_at: String,
    /// The settings that were changed, by the id of their config option.
    pub settings: BTreeMap<String, SessionConfigOptionValue>,
}

impl SessionRecord {
    /// A session without a title, with every setting at its default.
    pub fn new(id: impl Into<SessionId>, cwd: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            number: 0,
            cwd: cwd.into(),
            additional_directories: Vec::new(),
            title: None,
            updated_at: crate::clock::now(),
            settings: BTreeMap::new(),
        }
    }
}

/// An update of a session and its place in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Counted from 1 within the session.
    pub number: u64,
    /// The `update` of a `session/update`, as JSON.
    pub update: Json,
}

impl Event {
    /// An event with its number.
    pub fn new(number: u64, update: Json) -> Self {
        Self { number, update }
    }
}

/// Why a store could not do it, in words for a person.
pub type StoreError = String;

/// What the methods of a [`Store`] return.
pub type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = std::result::Result<T, StoreError>> + Send + 'a>>;

/// Keeps sessions and their events.
///
/// # Contract
///
/// - A future that is dropped before it is ready has either done everything or nothing.
/// - When the future of a method that writes is ready, what it wrote is as durable as the
///   store can make it, and every later call sees it.
/// - The runtime never appends two events to one session at the same time. Calls for
///   different sessions come at any time.
/// - A store may forget the oldest events of a session to bound its size. It never forgets
///   one from the middle, and numbers are never given twice.
pub trait Store: Send + Sync + 'static {
    /// Takes in a new session and returns its number, one above the last ever given.
    ///
    /// # Errors
    ///
    /// When the id is taken, or the store is full.
    fn create<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, u64>;

    /// Replaces what is known of a session, but for its number. Unknown sessions are left alone.
    fn save<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, ()>;

    /// What is known of a session; none if there is no such session.
    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>>;

    /// Up to `limit` sessions, the youngest first: those with a number below `before`, if it
    /// is given, that work in `cwd`, if that is given.
    fn list<'a>(
        &'a self,
        cwd: Option<&'a str>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionRecord>>;

    /// Forgets a session and its events; `false` if there was none.
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool>;

    /// Puts an event at the end of a session and returns its number.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    fn append<'a>(&'a self, session: &'a SessionId, update: &'a Json) -> StoreFuture<'a, u64>;

    /// The next events strictly after `after`, in order: as many as the store likes to hand
    /// out at a time, and none only when there are no more. If the first one's number is not
    /// `after + 1`, those between have been forgotten.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    fn replay<'a>(&'a self, session: &'a SessionId, after: u64) -> StoreFuture<'a, Vec<Event>>;

    /// The number of the last event ever appended to a session; 0 before the first.
    ///
    /// # Errors
    ///
    /// When there is no such session.
    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, u64>;
}
