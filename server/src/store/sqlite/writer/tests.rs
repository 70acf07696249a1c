use std::cell::Cell;
use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::oneshot::Receiver;

use super::super::{file, owner::Owners, schema, write::Cache};
use super::*;
use crate::event::Batch;
use crate::store::{Commit, SessionRecord};

fn writer(folder: &TempDir) -> Writer {
    let path = file::prepare(&folder.path().join("sessions.db")).unwrap();
    let register = || {
        let owners = Owners::beside(&path).unwrap();
        let owner = owners.register().unwrap();
        Ok((owners, owner))
    };
    let (connection, (owners, owner)) =
        file::open_writer(&path, schema::STEPS, None, register).unwrap();
    let log = Log::open(&path).unwrap();
    Writer {
        tables: Tables {
            connection,
            owners,
            owner,
            max_record_bytes: 1 << 20,
            has_freed: Cell::new(true),
            cache: Cache::default(),
        },
        path,
        queue: Arc::new(Queue::new(8)),
        durability: Durability::TurnEnd,
        log,
        unsynced: None,
    }
}

type Reply<T> = Receiver<Result<T, StoreError>>;

fn job<T: Send + 'static>(
    sync: bool,
    work: impl FnMut(&Tables) -> Result<T, Failure> + Send + 'static,
) -> (BoxedJob<Tables>, Reply<T>) {
    job_of(None, sync, work)
}

fn job_of<T: Send + 'static>(
    runtime: Option<Handle>,
    sync: bool,
    work: impl FnMut(&Tables) -> Result<T, Failure> + Send + 'static,
) -> (BoxedJob<Tables>, Reply<T>) {
    let (reply, result) = oneshot::channel();
    let work = Work {
        work,
        sync,
        runtime,
        result: None,
        reply,
    };
    (Box::new(work), result)
}

fn create(id: &str) -> (BoxedJob<Tables>, Reply<()>) {
    let record = SessionRecord::new(id, "/");
    job(false, move |tables| tables.create(&record).map(drop))
}

/// A commit of one event.
fn event(number: u64) -> Commit {
    Commit {
        events: Batch::from_lines(number, "{}\n".to_owned()).map(Arc::new),
        ..Commit::default()
    }
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
    let wait = Duration::from_millis(200);
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
    writer.group(vec![create("1").0]);
    assert!(writer.unsynced.is_some());
    writer.group(vec![create("2").0, job(true, |_| Ok(())).0]);
    assert!(writer.unsynced.is_none());
    writer.group(vec![create("3").0]);
    writer.unsynced = Instant::now().checked_sub(SYNC_INTERVAL);
    assert!(writer.unsynced.is_some());
    writer.group(vec![create("4").0]);
    assert!(writer.unsynced.is_none());
    writer.durability = Durability::EveryCommit;
    writer.group(vec![create("5").0]);
    assert!(writer.unsynced.is_none());
}

/// A log of which no sync succeeds.
#[cfg(unix)]
fn broken_log() -> Log {
    let (_, pipe) = std::io::pipe().unwrap();
    let file: fs::File = std::os::fd::OwnedFd::from(pipe).into();
    assert!(file.sync_data().is_err());
    file.into()
}

#[cfg(unix)]
#[test]
fn a_log_that_cannot_be_synced_is_moved_into_the_database() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    writer.log = broken_log();
    let wait = Duration::from_millis(50);
    writer.tables.connection.busy_timeout(wait).unwrap();
    let size = |writer: &Writer| fs::metadata(&writer.path).unwrap().len();
    let before = size(&writer);
    let large = |id: &str, sync| {
        let mut record = SessionRecord::new(id, "/");
        record.title = Some("x".repeat(100_000));
        job(sync, move |tables| tables.create(&record).map(drop))
    };
    let (job, reply) = large("1", true);
    writer.group(vec![job]);
    assert_eq!(kind(reply), None);
    let moved = size(&writer);
    assert!(moved > before + 80_000, "{before} and {moved} bytes");

    // One that reads is in the way. Only those fail that must be on the disk.
    let mut other = Connection::open(&writer.path).unwrap();
    let reading = other.transaction().unwrap();
    let count = "SELECT count(*) FROM sessions";
    let count = reading.query_row(count, [], |row| row.get::<_, u32>(0));
    assert_eq!(count, Ok(1));
    let (synced, must_sync) = large("2", true);
    let (other, need_not) = large("3", false);
    writer.log = broken_log();
    writer.group(vec![synced, other]);
    assert_eq!(kind(must_sync), Some(StoreErrorKind::Unavailable));
    assert_eq!(kind(need_not), None);
    assert!(writer.unsynced.is_some());
    drop(reading);
    assert!(writer.sync().is_ok());
    assert!(size(&writer) > moved + 160_000);
}

#[cfg(unix)]
#[test]
fn commits_are_synced_after_a_second() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    // Moving the log shows that it is to be synced.
    writer.log = broken_log();
    let size = {
        let path = writer.path.clone();
        move || fs::metadata(&path).unwrap().len()
    };
    let (queue, before) = (writer.queue.clone(), size());
    let thread = std::thread::spawn(move || writer.run());
    let mut record = SessionRecord::new("s", "/");
    record.title = Some("x".repeat(100_000));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let create = call(&queue, false, move |tables| {
        tables.create(&record).map(drop)
    });
    let start = Instant::now();
    runtime.block_on(create).unwrap();
    while size() == before {
        assert!(start.elapsed() < SYNC_INTERVAL * 60, "never synced");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(start.elapsed() > SYNC_INTERVAL / 2, "{:?}", start.elapsed());
    queue.close();
    thread.join().unwrap();
}

#[test]
fn a_sync_waits_for_as_many_commits_as_the_latest_group_had() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let gathered = |queued: usize, sync, latest| {
        for _ in 0..queued {
            assert!(runtime.block_on(writer.queue.push(job(true, |_| Ok(())).0)));
        }
        let mut jobs = vec![job(sync, |_| Ok(())).0];
        let start = Instant::now();
        writer.gather(&mut jobs, latest);
        let left = writer.queue.take(9, Some(Duration::ZERO));
        assert_eq!(matches!(left, Taken::Items(_)), jobs.len() <= queued);
        (jobs.len(), start.elapsed() >= GATHER)
    };
    assert_eq!(gathered(1, true, 2).0, 2);
    assert_eq!(gathered(0, true, 2), (1, true));
    assert_eq!(gathered(2, true, 2).0, 3);
    // Alone, or without a sync, it does not wait.
    assert_eq!(gathered(1, true, 1).0, 1);
    assert_eq!(gathered(1, false, 2).0, 1);
}

#[test]
fn callers_of_one_runtime_are_answered_by_one_task() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    let job = |runtime: Option<&Handle>| job_of(runtime.cloned(), false, |_| Ok(()));
    let (first, mut first_reply) = job(Some(&handle));
    let (other, mut other_reply) = job(None);
    let (second, mut second_reply) = job(Some(&handle));
    writer.group(vec![first, other, second]);
    assert!(other_reply.try_recv().is_ok());
    assert!(first_reply.try_recv().is_err(), "not answered by a task");
    runtime.block_on(tokio::task::yield_now());
    assert!(first_reply.try_recv().is_ok() && second_reply.try_recv().is_ok());

    // One that has ended holds nobody up.
    drop(runtime);
    let (first, mut first_reply) = job(Some(&handle));
    let (second, mut second_reply) = job(Some(&handle));
    writer.group(vec![first, second]);
    assert!(first_reply.try_recv().is_ok() && second_reply.try_recv().is_ok());
}

#[test]
fn what_another_connection_writes_ends_what_is_cached() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let record = SessionRecord::new("s", "/");
    let (create, mut reply) = job(false, move |tables| tables.create(&record));
    writer.group(vec![create]);
    let lease = reply.try_recv().unwrap().unwrap();
    let append = |first: u64| {
        let (lease, commit) = (lease.clone(), event(first));
        job(false, move |tables| tables.commit(&lease, &commit))
    };
    for first in [1, 2] {
        let (append, reply) = append(first);
        writer.group(vec![append]);
        assert_eq!(kind(reply), None);
    }
    let other = Connection::open(&writer.path).unwrap();
    let delete = "DELETE FROM batches WHERE first = 2";
    assert_eq!(other.execute(delete, []), Ok(1));
    for (first, expected) in [(3, Some(StoreErrorKind::Conflict)), (2, None)] {
        let (append, reply) = append(first);
        writer.group(vec![append]);
        assert_eq!(kind(reply), expected);
    }
    let steal = "UPDATE sessions SET token = token + 1";
    assert_eq!(other.execute(steal, []), Ok(1));
    let (append, reply) = append(3);
    writer.group(vec![append]);
    assert_eq!(kind(reply), Some(StoreErrorKind::LeaseLost));
}

#[test]
fn what_was_rolled_back_is_not_cached() {
    let folder = TempDir::new().unwrap();
    let mut writer = writer(&folder);
    let record = SessionRecord::new("s", "/");
    let (create, mut reply) = job(false, move |tables| tables.create(&record));
    writer.group(vec![create]);
    let lease = reply.try_recv().unwrap().unwrap();
    let commit = event(1);
    let (append, broken) = job(false, {
        let (lease, commit) = (lease.clone(), commit.clone());
        move |tables| {
            tables.commit(&lease, &commit)?;
            Ok(tables.connection.execute_batch("THIS FAILS")?)
        }
    });
    writer.group(vec![append]);
    assert_eq!(kind(broken), Some(StoreErrorKind::Corrupt));
    let (append, reply) = job(false, move |tables| tables.commit(&lease, &commit));
    writer.group(vec![append]);
    assert_eq!(kind(reply), None);
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
