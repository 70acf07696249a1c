//! Backing up and checking a store that servers may be using.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::{Commit, Lease, SessionRecord, SqliteStore, Store, StoreErrorKind};
use rusqlite::Connection;
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("sessions.db")
    }

    fn copy(&self) -> PathBuf {
        self.0.path().join("copy.db")
    }

    /// Returns what stands beside the store and its own files.
    fn others(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| !name.starts_with("sessions.db"))
            .collect()
    }

    fn command(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
        command.args(["sessions", "--store", self.store().to_str().unwrap()]);
        command.args(args).output().unwrap()
    }
}

fn commit(first: u64, count: u64) -> Commit {
    let lines =
        (first..first + count).map(|number| format!("{{\"event\":\"x\",\"n\":{number}}}\n"));
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(Batch::from_lines(first, lines.collect()).unwrap()));
    commit
}

async fn filled(path: &Path) -> (SqliteStore, Lease) {
    let store = SqliteStore::open(path).unwrap();
    let lease = store.create(&SessionRecord::new("one", "/")).await.unwrap();
    for first in [1, 11, 21] {
        store.commit(&lease, commit(first, 10)).await.unwrap();
    }
    (store, lease)
}

/// Changes a store that nobody uses behind its back.
fn change(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_the_store_of_one_moment_while_others_write() {
    let place = Place::new();
    let (store, lease) = filled(&place.store()).await;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (store, stopped) = (Arc::new(store), stop.clone());
    let written = tokio::spawn({
        let store = store.clone();
        async move {
            let mut next = 31;
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                store.commit(&lease, commit(next, 5)).await.unwrap();
                next += 5;
            }
            next - 1
        }
    });
    let (from, to) = (place.store(), place.copy());
    let copied = tokio::task::spawn_blocking(move || SqliteStore::back_up(from, to));
    let bytes = copied.await.unwrap().unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let last = written.await.unwrap();

    assert_eq!(fs::metadata(place.copy()).unwrap().len(), bytes);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(place.copy()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(place.others(), ["copy.db"]);
    let found = SqliteStore::check(place.copy()).unwrap();
    assert_eq!(found.problems, Vec::<String>::new());
    assert!(found.events >= 30 && found.events <= last, "{found:?}");
    // The process that has the session open is none of the copy.
    assert_eq!((found.open, found.abandoned), (0, 1));
    let copy = SqliteStore::open(place.copy()).unwrap();
    let (record, lease) = copy.acquire(&"one".into()).await.unwrap();
    assert_eq!(record.last_event, found.events);
    copy.commit(&lease, commit(found.events + 1, 1))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_backup_replaces_nothing_and_leaves_no_part_of_itself() {
    let place = Place::new();
    let (store, _lease) = filled(&place.store()).await;
    fs::write(place.copy(), "precious").unwrap();
    let error = SqliteStore::back_up(place.store(), place.copy()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    assert_eq!(fs::read(place.copy()).unwrap(), b"precious");
    assert_eq!(place.others(), ["copy.db"]);
    drop(store);

    fs::remove_file(place.copy()).unwrap();
    let nowhere = place.0.path().join("no/copy.db");
    let error = SqliteStore::back_up(place.store(), nowhere).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    // The store cannot be read to its end.
    let mut bytes = fs::read(place.store()).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xff);
    fs::write(place.store(), bytes).unwrap();
    let error = SqliteStore::back_up(place.store(), place.copy()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    fs::remove_file(place.store()).unwrap();
    let error = SqliteStore::back_up(place.store(), place.copy()).unwrap_err();
    assert!(error.to_string().contains("sessions.db"), "{error}");
    assert!(!place.store().exists(), "a backup creates no store");
    assert_eq!(place.others(), Vec::<String>::new());
}

#[test]
fn stores_of_earlier_versions_stay_what_they_are() {
    let place = Place::new();
    let first = Connection::open(place.store()).unwrap();
    let tables = include_str!("../../../tests/stores/version-1.sql");
    first.execute_batch(tables).unwrap();
    let before = fs::read(place.store()).unwrap();
    SqliteStore::back_up(place.store(), place.copy()).unwrap();
    let mut found = SqliteStore::check(place.store()).unwrap();
    assert_eq!(found, SqliteStore::check(place.copy()).unwrap());
    assert_eq!(found.problems.pop(), None);
    assert_eq!((found.version, found.sessions, found.events), (1, 3, 18));
    assert_eq!((found.open, found.abandoned), (0, 1));
    assert!(
        fs::read(place.store()).unwrap() == before,
        "the store changed"
    );
}

#[tokio::test]
async fn a_check_names_what_is_wrong_with_the_events() {
    for (sql, expected) in [
        (
            "DELETE FROM batches WHERE first = 11",
            "session one: expected event 11, got event 21",
        ),
        (
            "DELETE FROM batches WHERE first = 1",
            "session one: expected event 1, got event 11",
        ),
        (
            "UPDATE activity SET oldest = 11; DELETE FROM batches WHERE first < 20",
            "session one: expected event 11, got event 21",
        ),
        (
            "UPDATE batches SET last = 22 WHERE first = 11",
            "events 11 to 22 are 10 lines",
        ),
        (
            "DELETE FROM sessions",
            "events 1 to 10 belong to no session",
        ),
        (
            "DELETE FROM activity",
            "session one: it has no row of activity",
        ),
        (
            "INSERT INTO prompts VALUES (99, 4, '{}')",
            "prompt 4 belongs to no session",
        ),
        (
            "INSERT INTO prompts SELECT key, 4, '{' FROM sessions",
            "session one: prompt 4 cannot be read",
        ),
        (
            "UPDATE sessions SET owner = '../x'",
            "session one: its owner ../x",
        ),
    ] {
        let place = Place::new();
        drop(filled(&place.store()).await);
        change(&place.store(), sql);
        let found = SqliteStore::check(place.store()).unwrap();
        let problems = found.problems.join("\n");
        assert!(problems.contains(expected), "{sql}: {problems}");
    }
    let place = Place::new();
    drop(filled(&place.store()).await);
    // An index that has not what its table has.
    change(
        &place.store(),
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'activity_by_time'",
    );
    let found = SqliteStore::check(place.store()).unwrap();
    assert!(found.problems[0].starts_with("the database: "), "{found:?}");
}

#[tokio::test]
async fn a_check_tells_living_owners_from_dead_ones_and_removes_no_file() {
    let place = Place::new();
    let (store, _lease) = filled(&place.store()).await;
    let owners = place.0.path().join("sessions.db.owners");
    fs::write(owners.join("1-abc.lock"), "").unwrap();
    let dead = store.create(&SessionRecord::new("two", "/")).await.unwrap();
    change(
        &place.store(),
        "UPDATE sessions SET owner = '1-abc' WHERE id = 'two'",
    );
    let before = fs::read(place.store()).unwrap();
    let found = SqliteStore::check(place.store()).unwrap();
    assert_eq!((found.sessions, found.open, found.abandoned), (2, 1, 1));
    assert!(owners.join("1-abc.lock").exists());
    assert!(
        fs::read(place.store()).unwrap() == before,
        "the store changed"
    );
    drop(dead);
}

#[tokio::test]
async fn the_commands_say_what_they_found_and_exit_accordingly() {
    let place = Place::new();
    drop(filled(&place.store()).await);
    let text = |output: &Output| {
        let streams = [&output.stdout, &output.stderr];
        streams
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .concat()
    };
    let checked = place.command(&["check"]);
    let said = text(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.contains("events:    30\n"), "{said}");
    let copy = place.copy().to_str().unwrap().to_owned();
    let copied = place.command(&["backup", &copy]);
    assert_eq!(copied.status.code(), Some(0), "{}", text(&copied));
    assert!(text(&copied).starts_with(&format!("wrote {copy} (")));
    let again = place.command(&["backup", &copy]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again).contains("exists already"), "{}", text(&again));
    change(&place.store(), "DELETE FROM batches WHERE first = 11");
    let checked = place.command(&["check"]);
    let said = text(&checked);
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(
        said.contains("problem:   session one: expected event 11"),
        "{said}"
    );
    assert!(said.contains("Restore it from a backup"), "{said}");
    let memory = place.command(&["check", "--store", "memory"]);
    assert_eq!(memory.status.code(), Some(2), "{}", text(&memory));
}
