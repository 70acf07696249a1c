use std::cell::Cell;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::oneshot::Receiver;

use super::super::{file, owner::Owners, schema};
use super::*;
use crate::store::SessionRecord;

fn writer(folder: &TempDir) -> Writer {
    let path = file::prepare(&folder.path().join("sessions.db")).unwrap();
    let register = || {
        let owners = Owners::beside(&path).unwrap();
        let owner = owners.register().unwrap();
        Ok((owners, owner))
    };
    let (connection, (owners, owner)) =
        file::open_writer(&path, schema::STEPS, None, register).unwrap();
    Writer {
        tables: Tables {
            connection,
            owners,
            owner,
            max_record_bytes: 1 << 20,
            has_freed: Cell::new(true),
        },
        path,
        queue: Arc::new(Queue::new(8)),
        durability: Durability::TurnEnd,
        full: false,
        unsynced: None,
    }
}

type Reply<T> = Receiver<Result<T, StoreError>>;

fn job<T: Send + 'static>(
    sync: bool,
    work: impl FnMut(&Tables) -> Result<T, Failure> + Send + 'static,
) -> (BoxedJob<Tables>, Reply<T>) {
    let (reply, result) = oneshot::channel();
    let work = Work {
        work,
        sync,
        result: None,
        reply,
    };
    (Box::new(work), result)
}

fn create(id: &str) -> (BoxedJob<Tables>, Reply<()>) {
    let record = SessionRecord::new(id, "/");
    job(false, move |tables| tables.create(&record).map(drop))
}

fn kind<T>(mut reply: Reply<T>) -> Option<StoreErrorKind> {
    reply.try_recv().unwrap().err().map(|error| error.kind())
}

fn log_bytes(database: &Path) -> u64 {
    let log = database.with_extension("db-wal");
    fs::metadata(log).unwrap().len()
}

#[test]
fn what_waits_is_written_in_one_transaction() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let (first, _reply) = create("first");
    writer.group(vec![first]);
    let one = log_bytes(&writer.path);
    let (jobs, replies): (Vec<_>, Vec<_>) =
        (0..50).map(|number| create(&number.to_string())).unzip();
    writer.group(jobs);
    assert!(replies.into_iter().all(|reply| kind(reply).is_none()));
    let many = log_bytes(&writer.path) - one;
    assert!(many < 10 * one, "{many} bytes for 50, {one} for one");
}

#[test]
fn work_that_cannot_be_done_fails_alone() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let (first, first_reply) = create("first");
    let record = SessionRecord::new("half", "/");
    let (broken, broken_reply) = job(false, move |tables| {
        tables.create(&record)?;
        Ok(tables.connection.execute_batch("THIS FAILS")?)
    });
    // Refused, which is a result, in the group and alone.
    let (again, again_reply) = create("first");
    let (last, last_reply) = create("last");
    writer.group(vec![first, broken, again, last]);
    assert_eq!(kind(first_reply), None);
    assert_eq!(kind(broken_reply), Some(StoreErrorKind::Corrupt));
    assert_eq!(kind(again_reply), Some(StoreErrorKind::Conflict));
    assert_eq!(kind(last_reply), None);
    let ids = "SELECT group_concat(id, ' ' ORDER BY id) FROM sessions";
    let ids = writer
        .tables
        .connection
        .query_row(ids, [], |row| row.get::<_, String>(0));
    assert_eq!(ids.as_deref(), Ok("first last"));
}

#[test]
fn while_another_process_writes_all_fail_after_the_same_wait() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let wait = Duration::from_millis(50);
    writer.tables.connection.busy_timeout(wait).unwrap();
    let other = Connection::open(&writer.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (jobs, replies): (Vec<_>, Vec<_>) =
        (0..50).map(|number| create(&number.to_string())).unzip();
    let start = Instant::now();
    writer.group(jobs);
    assert!(start.elapsed() < wait * 20, "{:?}", start.elapsed());
    for reply in replies {
        assert_eq!(kind(reply), Some(StoreErrorKind::Unavailable));
    }
    other.execute_batch("ROLLBACK").unwrap();
    let (job, reply) = create("0");
    writer.group(vec![job]);
    assert_eq!(kind(reply), None);
}

#[test]
fn a_commit_is_synced_when_it_asks_for_it_or_the_time_is_over() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let level = |writer: &Writer| {
        let connection = &writer.tables.connection;
        let level = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, u8>(0));
        level.unwrap()
    };
    const NORMAL: u8 = 1;
    const FULL: u8 = 2;
    assert_eq!(level(&writer), NORMAL);
    writer.group(vec![create("1").0]);
    assert!(writer.unsynced.is_some());
    writer.group(vec![create("2").0, job(true, |tables| tables.touch()).0]);
    assert!(writer.unsynced.is_none());
    assert_eq!(level(&writer), FULL);
    writer.group(vec![create("3").0]);
    assert_eq!(level(&writer), NORMAL);
    writer.unsynced = Instant::now().checked_sub(SYNC_INTERVAL);
    assert!(writer.unsynced.is_some());
    writer.group(vec![create("4").0]);
    assert_eq!((level(&writer), writer.unsynced), (FULL, None));
    writer.durability = Durability::EveryCommit;
    writer.group(vec![create("5").0]);
    assert_eq!((level(&writer), writer.unsynced), (FULL, None));
}

#[test]
fn a_writer_that_panics_leaves_nobody_waiting() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder);
    let queue = writer.queue.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let thread = std::thread::spawn(move || writer.run());
    let call = |message: &'static str| {
        let work = move |_: &Tables| -> Result<(), Failure> { panic!("{message}") };
        runtime.block_on(call(&queue, false, work))
    };
    for _ in 0..2 {
        let error = call("on purpose").unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    }
    assert!(thread.join().is_err());
}
