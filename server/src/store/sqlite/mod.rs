//! Sessions on disk, in one SQLite database.

mod backup;
mod check;
mod failure;
mod file;
mod log;
mod owner;
mod queue;
mod read;
mod reader;
mod schema;
mod vacuum;
mod write;
mod writer;

use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use acp_sdk::v1::SessionId;
use etcetera::BaseStrategy as _;
use rusqlite::Connection;

pub use self::check::StoreCheck;
use self::log::Log;
use self::owner::Owners;
use self::queue::Queue;
use self::reader::Reader;
use self::write::{Cache, Tables};
use self::writer::{BoxedJob, Writer};
use super::{
    Commit, EventPage, Lease, ListQuery, SessionRecord, Store, StoreError, StoreErrorKind,
    StoreFuture, StoreUsage, StoredPrompt,
};

/// Commits that wait for the writer, at most; further ones wait for room.
const WRITE_QUEUE: usize = 256;

/// Reads that wait for a reader, at most.
const READ_QUEUE: usize = 64;

const READERS: usize = 2;

/// Which commits survive a loss of power. All survive the end of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Those that are marked with [`Commit::sync`], which the server does at the end of a turn, and
    /// all that are older than a second.
    #[default]
    TurnEnd,
    /// Each, before it completes. Commits within a millisecond share one sync.
    EveryCommit,
}

/// Sessions in a file, shared by any number of processes.
///
/// - One thread writes; all commits that wait are written in one transaction. Two threads read, and
///   neither waits for the writer.
/// - A lease belongs to one value of this type. It ends when it is released, or when the value or
///   its process is gone, at once.
/// - The space of what is deleted is used again. When more than a quarter of the file and more than
///   4 MiB is free, the file shrinks while nothing else is written. A file that an earlier version
///   created does not shrink.
/// - Files are created for the current user only (on Unix: mode 0600, folders 0700). Beside the
///   database `PATH` there are `PATH-wal` and `PATH-shm`, and `PATH.owners` with a lock file per
///   open store.
/// - The path must be on a local file system: network file systems do not share the memory that
///   SQLite needs, and their locks are not reliable. All processes must use the same path; symbolic
///   links are resolved, hard links are not.
///
/// Dropping it waits until what was queued is written.
pub struct SqliteStore {
    path: PathBuf,
    writes: Arc<Queue<BoxedJob<Tables>>>,
    reads: Arc<Queue<BoxedJob<Connection>>>,
    threads: Vec<JoinHandle<()>>,
}

/// Options of a [`SqliteStore`].
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    durability: Durability,
    max_pages: Option<u32>,
    max_record_bytes: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            max_pages: None,
            max_record_bytes: SessionRecord::MAX_BYTES,
        }
    }
}

impl SqliteOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which commits survive a loss of power (default [`Durability::TurnEnd`]).
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the maximum size of the database in pages of 4 KiB (default: as large as the disk).
    #[must_use]
    pub fn max_pages(mut self, pages: u32) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// Sets the maximum bytes of a record (default 1 MiB): id, name, directories, title,
    /// settings and the handler's data.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// Opens a store; creates the file and its folder if they are missing.
    ///
    /// Blocks while it reads and writes files, up to 20 s when another process is writing. Operations
    /// of the store wait as long, then fail with `Unavailable`.
    ///
    /// # Errors
    ///
    /// - `Corrupt`: the file is not a session store, is damaged, or is of a later version. Nothing
    ///   was written.
    /// - `Full`: the disk is full.
    /// - `Unavailable`: the file or its folder cannot be written, or another process is writing.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let path = file::prepare(path.as_ref())?;
        let failed = |what: &str, error| failure::file(&path, what, error);
        let register = || {
            let owners = Owners::beside(&path);
            let owners = owners.map_err(|error| failed("create the lock folder", error))?;
            let owner = owners.register();
            let owner = owner.map_err(|error| failed("create the lock file", error))?;
            Ok((owners, owner))
        };
        let opened = file::open_writer(&path, schema::STEPS, self.max_pages, register);
        let (connection, (owners, owner)) = opened.map_err(|failure| failure.into_error(&path))?;
        let log = Log::open(&path).map_err(|error| failed("open the write-ahead log", error))?;
        let mut store = SqliteStore {
            path,
            writes: Arc::new(Queue::new(WRITE_QUEUE)),
            reads: Arc::new(Queue::new(READ_QUEUE)),
            threads: Vec::new(),
        };
        let writer = Writer {
            path: store.path.clone(),
            tables: Tables {
                connection,
                owners,
                owner,
                max_record_bytes: self.max_record_bytes,
                // What was deleted before may still take space.
                has_freed: Cell::new(true),
                cache: Cache::default(),
            },
            queue: store.writes.clone(),
            durability: self.durability,
            log,
            unsynced: None,
        };
        store.spawn("acp-store-write", move || writer.run())?;
        for _ in 0..READERS {
            let connection = file::open_reader(&store.path);
            let reader = Reader {
                path: store.path.clone(),
                connection: connection.map_err(|failure| failure.into_error(&store.path))?,
                queue: store.reads.clone(),
            };
            store.spawn("acp-store-read", move || reader.run())?;
        }
        Ok(store)
    }
}

impl SqliteStore {
    /// Opens a store with the default options, as [`SqliteOptions::open`].
    ///
    /// # Errors
    ///
    /// As [`SqliteOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteOptions::new().open(path)
    }

    /// Returns the path of the current user's store: `acp-server/sessions.db` in the platform's
    /// data folder, such as `~/.local/share`.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the user has no home folder.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        let folders = etcetera::base_strategy::choose_native_strategy().map_err(|error| {
            let message = "cannot find the data folder of the user; name a path for the store";
            StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
        })?;
        Ok(folders.data_dir().join("acp-server").join("sessions.db"))
    }

    /// Returns the path of the file, absolute and without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            let message = "cannot start a thread of the session store";
            StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.writes.close();
        self.reads.close();
        for thread in self.threads.drain(..) {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SqliteStore");
        shown.field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store for SqliteStore {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        let record = record.clone();
        let create = move |tables: &Tables| tables.create(&record);
        Box::pin(writer::call(&self.writes, false, create))
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        let session = session.clone();
        let acquire = move |tables: &Tables| tables.acquire(&session);
        Box::pin(writer::call(&self.writes, false, acquire))
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        let session = session.clone();
        let acquire = move |tables: &Tables| tables.acquire_unused(&session);
        Box::pin(writer::call(&self.writes, false, acquire))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        let lease = lease.clone();
        let release = move |tables: &Tables| tables.release(&lease);
        Box::pin(writer::call(&self.writes, false, release))
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        let (lease, sync) = (lease.clone(), commit.sync);
        let commit = move |tables: &Tables| tables.commit(&lease, &commit);
        Box::pin(writer::call(&self.writes, sync, commit))
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        let session = session.clone();
        let find = move |connection: &Connection| read::find(connection, &session);
        Box::pin(writer::call(&self.reads, false, find))
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        let query = query.clone();
        let list = move |connection: &Connection| read::list(connection, &query);
        Box::pin(writer::call(&self.reads, false, list))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        let session = session.clone();
        let read =
            move |connection: &Connection| read::read(connection, &session, after, max_bytes);
        Box::pin(writer::call(&self.reads, false, read))
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        let session = session.clone();
        let prompts = move |connection: &Connection| read::prompts(connection, &session);
        Box::pin(writer::call(&self.reads, false, prompts))
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        let (source, target) = (source.clone(), target.clone());
        let fork = move |tables: &Tables| tables.fork(&source, up_to, &target);
        Box::pin(writer::call(&self.writes, false, fork))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        let session = session.clone();
        let delete = move |tables: &Tables| tables.delete(&session);
        Box::pin(writer::call(&self.writes, false, delete))
    }

    fn derived<'a>(&'a self, sessions: &'a [SessionId]) -> StoreFuture<'a, Vec<Option<String>>> {
        let sessions = sessions.to_vec();
        let derived = move |connection: &Connection| read::derived(connection, &sessions);
        Box::pin(writer::call(&self.reads, false, derived))
    }

    fn keep_derived<'a>(&'a self, derived: Vec<(SessionId, String)>) -> StoreFuture<'a, ()> {
        let keep = move |tables: &Tables| tables.keep_derived(&derived);
        Box::pin(writer::call(&self.writes, false, keep))
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        let owners = Owners::of(&self.path);
        let abandoned =
            move |connection: &Connection| read::abandoned(connection, &owners, limit).map(Some);
        Box::pin(writer::call(&self.reads, false, abandoned))
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        let path = self.path.clone();
        let usage = move |connection: &Connection| read::usage(connection, &path);
        Box::pin(writer::call(&self.reads, false, usage))
    }
}
