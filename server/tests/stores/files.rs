//! Files that are foreign, damaged, full, read-only or shared.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};

use acp_sdk::v1::SessionId;
use acp_server::event::Batch;
use acp_server::store::{
    Commit, Lease, ListQuery, SessionRecord, SqliteOptions, SqliteStore, Store, StoreErrorKind,
};
use acp_store_tests::contract;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use crate::versions;

fn events(first: u64, count: u64, bytes: usize) -> Commit {
    let text = format!("\"{}\"\n", "x".repeat(bytes));
    let lines = text.repeat(usize::try_from(count).unwrap());
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(Batch::from_lines(first, lines).unwrap()));
    commit
}

async fn create(store: &SqliteStore, id: &str) -> Lease {
    store.create(&SessionRecord::new(id, "/")).await.unwrap()
}

/// Returns the names and contents of the files in a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let content = fs::read(entry.path()).unwrap_or_default();
            (entry.file_name().into_string().unwrap(), content)
        })
        .collect();
    files.sort();
    files
}

/// Opening fails with this kind and these words, and leaves the folder as it is.
fn refused(folder: &TempDir, kind: StoreErrorKind, words: &[&str]) {
    let path = folder.path().join("sessions.db");
    let before = contents(folder.path());
    let error = SqliteStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for word in words.iter().copied().chain([path.to_str().unwrap()]) {
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
    assert!(contents(folder.path()) == before, "the folder changed");
}

#[test]
fn files_of_others_are_left_as_they_are() {
    let corrupt = StoreErrorKind::Corrupt;
    for text in ["x", "SQLite format 3\0", &"no database\n".repeat(1_000)] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("sessions.db"), text).unwrap();
        refused(
            &folder,
            corrupt,
            &["not a session store", "not an SQLite database"],
        );
    }
    for (mode, sql) in [
        ("delete", "CREATE TABLE theirs (x)"),
        ("wal", "CREATE TABLE theirs (x)"),
        ("delete", "PRAGMA application_id = 7"),
        ("delete", "PRAGMA user_version = 1"),
        // Their own sessions.
        (
            "delete",
            "CREATE TABLE sessions (key, id); PRAGMA user_version = 1",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let theirs = Connection::open(folder.path().join("sessions.db")).unwrap();
        theirs.pragma_update(None, "journal_mode", mode).unwrap();
        theirs.execute_batch(sql).unwrap();
        refused(
            &folder,
            corrupt,
            &["not a session store", "another application"],
        );
        // Also with a log that is not in the file yet, and after its owner has closed it.
        drop(theirs);
        refused(
            &folder,
            corrupt,
            &["not a session store", "another application"],
        );
    }
}

#[tokio::test]
async fn a_later_version_is_refused_with_both_versions() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    drop(SqliteStore::open(&path).unwrap());
    let later = Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", 9).unwrap();
    // In the log only, while another process has it open.
    let error = SqliteStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    drop(later);
    let words = ["version 9", "up to 7"];
    assert!(
        words.iter().all(|word| error.to_string().contains(word)),
        "{error}"
    );
    refused(&folder, StoreErrorKind::Corrupt, &words);
}

#[tokio::test]
async fn events_of_a_file_without_times_have_none() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    versions::write(&path, 2);
    let store = SqliteStore::open(&path).unwrap();
    let session = "sess_1".into();
    let (record, lease) = store.acquire(&session).await.unwrap();
    let mut later = events(record.last_event + 1, 1, 9);
    let batch = later.events.take().map(Arc::unwrap_or_clone).unwrap();
    later.events = Some(Arc::new(batch.with_time(Some(7))));
    store.commit(&lease, later).await.unwrap();
    let page = store.read(&session, record.last_event - 1, 1 << 20).await;
    let page = page.unwrap();
    let batches = page.batches.iter();
    let times = batches.flat_map(|batch| {
        let events = batch.after(record.last_event - 1);
        events.map(|(number, _)| batch.time(number))
    });
    assert_eq!(times.collect::<Vec<_>>(), [None, Some(7)]);
}

/// The version is in the log, and nobody else has the file open who would move it from there.
#[test]
fn the_log_of_a_later_version_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    drop(SqliteStore::open(&path).unwrap());
    let later = Connection::open(&path).unwrap();
    later
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    later.pragma_update(None, "user_version", 9).unwrap();
    drop(later);
    let files =
        || [path.clone(), path.with_extension("db-wal")].map(|path| fs::read(path).unwrap());
    let before = files();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
    assert!(files() == before, "the files changed");
}

/// A process was killed after it had moved the first page from the log into the file.
#[tokio::test]
async fn a_checkpoint_that_was_killed_is_repeated() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let lease = create(&store, "s").await;
    for round in 0..50 {
        let commit = events(round * 9 + 1, 9, 1_000);
        store.commit(&lease, commit).await.unwrap();
    }
    let (file, log) = (fs::read(&path), fs::read(path.with_extension("db-wal")));
    let (mut file, log) = (file.unwrap(), log.unwrap());
    drop(store);
    let moved = fs::read(&path).unwrap();
    assert!(moved.len() > 2 * file.len(), "nothing was in the log");
    file[..4_096].copy_from_slice(&moved[..4_096]);
    fs::write(&path, file).unwrap();
    fs::write(path.with_extension("db-wal"), log).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(last_of_session(&store, "s").await, 450);
    store.acquire(&lease.session).await.unwrap();
}

#[tokio::test]
async fn a_reader_in_the_middle_delays_no_commit() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    let lease = create(&store, "s").await;
    store.commit(&lease, events(1, 9, 10)).await.unwrap();
    let reader = Connection::open(store.path()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let last = || -> u64 {
        let last = reader.query_row("SELECT max(last) FROM batches", [], |row| row.get(0));
        last.unwrap()
    };
    assert_eq!(last(), 9);
    for round in 1..100 {
        let mut commit = events(round * 9 + 1, 9, 1_000);
        commit.sync = round % 10 == 0;
        // Fails after 5 s if it has to wait for the reader.
        store.commit(&lease, commit).await.unwrap();
    }
    assert_eq!(last(), 9);
    assert_eq!(last_of_session(&store, "s").await, 900);
}

#[test]
fn what_cannot_be_created_is_named() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("sessions.db")).unwrap();
    refused(&folder, StoreErrorKind::Unavailable, &["directory"]);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = SqliteStore::open(file.join("sessions.db")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("create the folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_read_only_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let allow = |mode| {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o500);
    let root = fs::write(folder.path().join("x"), "").is_ok();
    if !root {
        refused(&folder, StoreErrorKind::Unavailable, &["ermission denied"]);
        allow(0o700);
        drop(SqliteStore::open(&path).unwrap());
        allow(0o500);
        // The owners' folder exists; the log cannot be created.
        refused(&folder, StoreErrorKind::Unavailable, &["writable"]);
    }
    allow(0o700);
    drop(SqliteStore::open(&path).unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_readable_by_the_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path().join("new/a/sessions.db")).unwrap();
    create(&store, "s").await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = store.path().parent().unwrap();
    assert_eq!(mode(parent), 0o700);
    assert_eq!(mode(parent.parent().unwrap()), 0o700);
    let mut files = 0;
    for entry in fs::read_dir(parent).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{path:?}");
            let lock = fs::read_dir(&path).unwrap().next().unwrap().unwrap();
            assert_eq!(mode(&lock.path()), 0o600);
        } else {
            assert_eq!(mode(&path), 0o600, "{path:?}");
        }
        files += 1;
    }
    assert_eq!(files, 4, "database, log, shared memory, owners");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_goes_on_when_there_is_space() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteOptions::new().max_pages(100).open(&path).unwrap();
    let (first, second) = (create(&store, "1").await, create(&store, "2").await);
    let mut last = 0;
    let error = loop {
        // Both at once: the one that fits is written although the other is not.
        let small = events(last / 20 + 1, 1, 10);
        let large = events(last + 1, 20, 1_000);
        let (large, small) =
            tokio::join!(store.commit(&first, large), store.commit(&second, small),);
        small.unwrap();
        match large {
            Ok(()) => last += 20,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    assert!(error.to_string().contains("delete sessions"), "{error}");
    let last_of = async |lease: &Lease| {
        let record = store.find(&lease.session).await.unwrap();
        record.unwrap().last_event
    };
    assert!(last > 100, "full after {last} events");
    assert_eq!(last_of(&first).await, last);
    assert_eq!(last_of(&second).await, last / 20 + 1);
    let record = SessionRecord::new("3", "/".repeat(100_000));
    let error = store.create(&record).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    let fork = SessionRecord::new("4", "/");
    let error = store.fork(&first.session, None, &fork).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    assert!(store.find(&fork.id).await.unwrap().is_none());

    assert!(store.delete(&first.session).await.unwrap());
    let (mut next, before) = (last / 20 + 2, last);
    while next < before {
        store
            .commit(&second, events(next, 20, 1_000))
            .await
            .unwrap();
        next += 20;
    }
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(last_of_session(&store, "2").await, next - 1);
}

async fn last_of_session(store: &SqliteStore, id: &str) -> u64 {
    let no_identity = |_: &str| None;
    let audit = contract::audit::session(store, &id.into(), no_identity, []).await;
    assert!(audit.is_clean(), "{audit:?}");
    audit.last
}

#[tokio::test]
async fn damaged_pages_are_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let lease = create(&store, "s").await;
    for round in 0..50 {
        store
            .commit(&lease, events(round * 9 + 1, 9, 1_000))
            .await
            .unwrap();
    }
    drop(store);
    let good = fs::read(&path).unwrap();
    let session = SessionId::from("s");
    let mut query = ListQuery::default();
    query.limit = 9;

    // All but the first page.
    let mut bad = good.clone();
    bad[4_096..].fill(0xA5);
    fs::write(&path, &bad).unwrap();
    let kind = match SqliteStore::open(&path) {
        Err(error) => error.kind(),
        Ok(store) => {
            let list = store.list(&query).await.unwrap_err();
            assert_eq!(list.kind(), StoreErrorKind::Corrupt, "{list}");
            store.acquire(&session).await.unwrap_err().kind()
        }
    };
    assert_eq!(kind, StoreErrorKind::Corrupt);

    // The second half: the session is found, its events are not readable.
    let mut bad = good.clone();
    let half = bad.len() / 8_192 * 4_096;
    bad[half..].fill(0xA5);
    fs::write(&path, &bad).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let (_, lease) = store.acquire(&session).await.unwrap();
    let read = store.read(&session, 0, usize::MAX).await.unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::Corrupt, "{read}");
    assert!(read.to_string().contains(path.to_str().unwrap()), "{read}");
    let fork = SessionRecord::new("f", "/");
    let error = store.fork(&session, None, &fork).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(store.find(&fork.id).await.unwrap().is_none());
    drop((store, lease));

    // Rows that SQLite finds in order.
    let damaged = |damage: &str| {
        fs::write(&path, &good).unwrap();
        Connection::open(&path)
            .unwrap()
            .execute_batch(damage)
            .unwrap();
        SqliteStore::open(&path).unwrap()
    };
    for damage in [
        "UPDATE batches SET lines = lines || '1' || char(10) WHERE first = 10",
        "UPDATE batches SET lines = '' WHERE first = 10",
        "UPDATE batches SET lines = cast(x'22ff220a' AS TEXT) WHERE first = 10",
        "UPDATE batches SET first = 11 WHERE first = 10",
        "DELETE FROM batches WHERE first = 10",
    ] {
        let store = damaged(damage);
        let error = store.read(&session, 0, usize::MAX).await.expect_err(damage);
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{damage}: {error}");
    }
    for damage in [
        "UPDATE sessions SET settings = '['",
        "UPDATE sessions SET additional_directories = '{}'",
        "UPDATE sessions SET owner = '../../x'",
    ] {
        let store = damaged(damage);
        assert!(store.acquire(&session).await.is_err(), "{damage}");
    }
}

#[tokio::test]
async fn a_session_in_use_names_the_process() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    create(&store, "s").await;
    // By another path to the same file.
    #[cfg(unix)]
    let path = {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        link.join("sessions.db")
    };
    let other = SqliteStore::open(&path).unwrap();
    let error = other.acquire(&"s".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    let process = format!("process {}", std::process::id());
    assert!(error.to_string().contains(&process), "{error}");
}

#[tokio::test]
async fn many_open_a_new_file_at_once() {
    for _ in 0..5 {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("sessions.db");
        let barrier = Barrier::new(6);
        let stores: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                SqliteStore::open(&path).unwrap()
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        for (number, store) in stores.iter().enumerate() {
            create(store, &number.to_string()).await;
        }
        let mut query = ListQuery::default();
        query.limit = 99;
        assert_eq!(stores[0].list(&query).await.unwrap().len(), 6);
    }
}

/// Deleting makes room in the file, which is given back while nothing is written.
#[tokio::test]
async fn a_file_shrinks_after_much_was_deleted() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(folder.path().join("sessions.db")).unwrap();
    let (large, small) = (create(&store, "large").await, create(&store, "small").await);
    for round in 0..200 {
        let commit = events(round * 10 + 1, 10, 10_000);
        store.commit(&large, commit).await.unwrap();
        store
            .commit(&small, events(round * 10 + 1, 10, 10))
            .await
            .unwrap();
    }
    let before = store.usage().await.unwrap();
    assert!(before.used_bytes > 20_000_000, "{before:?}");
    assert!(before.disk_bytes >= before.used_bytes, "{before:?}");
    assert!(store.delete(&large.session).await.unwrap());
    let start = std::time::Instant::now();
    let size = || fs::metadata(store.path()).unwrap().len();
    // A quarter, and 4 MiB, may stay free.
    while size() > 5 << 20 {
        assert!(start.elapsed().as_secs() < 60, "still {} bytes", size());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(last_of_session(&store, "small").await, 2_000);
    let after = store.usage().await.unwrap();
    assert!(after.used_bytes < 1_000_000, "{after:?}");
    store.commit(&small, events(2_001, 1, 10)).await.unwrap();
}
