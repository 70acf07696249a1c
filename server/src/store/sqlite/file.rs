//! Opening the database: whose file it is, who may read it, and which version it has.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::failure::{self, Failure};
use super::schema::{self, APPLICATION_ID};
use crate::store::{StoreError, StoreErrorKind};

/// How long a connection waits for another process to finish a transaction.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(20);

const ANOTHER: &str = "an SQLite database of another application";

/// Creates folder and file if they are missing, and returns the path without links, from which
/// the paths of lock files follow.
pub(super) fn prepare(path: &Path) -> Result<PathBuf, StoreError> {
    let failed = |what: &str, error| failure::file(path, what, error);
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        create_folder(folder).map_err(|error| failed("create the folder", error))?;
    }
    // SQLite gives the files beside it the permissions of this one.
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // A file that exists need not be creatable.
        Err(_) if path.is_file() => {}
        Err(error) => return Err(failed("create the file", error)),
    }
    if path.is_dir() {
        let error = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(failed("open the file", error));
    }
    fs::canonicalize(path).map_err(|error| failed("open the file", error))
}

/// Opens the connection that writes; creates or migrates the tables.
///
/// `registered` runs in the transaction in which that happens, so that it never runs in two
/// processes at the same time.
pub(super) fn open_writer<T>(
    path: &Path,
    steps: &[&str],
    max_pages: Option<u32>,
    registered: impl FnOnce() -> Result<T, StoreError>,
) -> Result<(Connection, T), Failure> {
    inspect(path, steps)?;
    let mut connection = connect(path)?;
    // Until it is known whose file it is, nothing is moved from its log into it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    if let Some(pages) = max_pages {
        let set = format!("PRAGMA max_page_count = {pages}");
        connection.query_row(&set, [], |_| Ok(()))?;
    }
    let is_empty = fs::metadata(path).is_ok_and(|file| file.len() == 0);
    let transaction = if is_empty {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        // Possible only before there are tables. It takes the write lock, and is in the transaction
        // because it creates the first page, which must not be seen without our mark.
        transaction.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        transaction
    } else {
        connection.transaction_with_behavior(TransactionBehavior::Immediate)?
    };
    let version = version_of(path, &transaction, steps)?;
    let value = registered()?;
    if version < schema::version_of(steps) {
        schema::migrate(&transaction, version, steps)?;
    }
    transaction.commit()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    write_ahead(&connection)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // 16 MiB with the default page size.
    connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    // Reading creates the log.
    connection.query_row("SELECT tokens FROM store", [], |_| Ok(()))?;
    Ok((connection, value))
}

/// Opens a connection that only reads. The tables exist.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Failure> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a store that exists, of any version that this program knows, for reading. Neither opening
/// nor closing changes it.
pub(super) fn open_existing(path: &Path) -> Result<Connection, Failure> {
    let path = existing(path)?;
    inspect(&path, schema::STEPS)?;
    let connection = open_reader(&path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    match version_of(&path, &connection, schema::STEPS)? {
        0 => Err(foreign(&path, "it is empty").into()),
        _ => Ok(connection),
    }
}

/// Returns the path of a store that exists, without links.
pub(super) fn existing(path: &Path) -> Result<PathBuf, StoreError> {
    fs::canonicalize(path).map_err(|error| {
        let message = format!("cannot open the session store {}: {error}", path.display());
        StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
    })
}

fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    // Each connection stays in one thread. The file exists.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A cached statement keeps its plan. Without it, one with a bound range is compiled again each
    // time it is used.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Refuses a file that is not ours or that a later version wrote, without writing to it or
/// creating files beside it.
///
/// It is read through SQLite: closing a file of one's own would release the locks that other
/// connections of the process have on it.
fn inspect(path: &Path, steps: &[&str]) -> Result<(), Failure> {
    match fs::metadata(path).map(|file| file.len()) {
        Ok(0) => return Ok(()),
        // SQLite takes a file of one byte for an empty database.
        Ok(..100) => return Err(foreign(path, "not an SQLite database").into()),
        _ => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(immutable_uri(path), flags)?;
    match version_of(path, &connection, steps) {
        // Ours has its mark as soon as it has anything. What another one has may be in its log.
        Ok(0) => Err(foreign(path, ANOTHER).into()),
        // Without its log, a file that is being moved from there looks damaged. Its owner may have
        // been killed while doing so. What it is shows when it is opened with the log.
        Err(Failure::Database(error)) if is_corrupt(&error) => Ok(()),
        result => result.map(drop),
    }
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}

/// Returns the version of a file, 0 for an empty one.
fn version_of(path: &Path, connection: &Connection, steps: &[&str]) -> Result<i32, Failure> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = match number("application_id") {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            return Err(foreign(path, "not an SQLite database").into());
        }
        application => application?,
    };
    let version = number("user_version")?;
    if application != APPLICATION_ID {
        let tables = "SELECT count(*) FROM sqlite_schema";
        let tables: u32 = connection.query_row(tables, [], |row| row.get(0))?;
        if application == 0 && version == 0 && tables == 0 {
            return Ok(0);
        }
        return Err(foreign(path, ANOTHER).into());
    }
    let ours = schema::version_of(steps);
    if !(0..=ours).contains(&version) {
        let message = format!(
            "the session store {} has version {version}; this program knows versions up to \
             {ours}. Use a later program, or another path",
            path.display()
        );
        return Err(StoreError::new(StoreErrorKind::Corrupt, message).into());
    }
    Ok(version)
}

fn foreign(path: &Path, what: &str) -> StoreError {
    let message = format!(
        "{} is not a session store: {what}. It was left as it is; choose another path",
        path.display()
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
}

/// Switches to write-ahead logging. Two processes that begin at once can meet here, where SQLite
/// does not wait by itself.
fn write_ahead(connection: &Connection) -> Result<(), Failure> {
    const ATTEMPTS: u32 = 50;
    for attempt in 1.. {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        });
        match mode {
            Ok(mode) if mode == "wal" => break,
            Ok(mode) => {
                let message = format!(
                    "SQLite cannot use a write-ahead log here (journal mode {mode}). The store \
                     needs a local file system"
                );
                return Err(StoreError::new(StoreErrorKind::Unavailable, message).into());
            }
            Err(error) if attempt < ATTEMPTS && is_busy(&error) => {
                std::thread::sleep(BUSY_TIMEOUT / ATTEMPTS);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

/// Returns the URI by which SQLite reads a file without locks, journals or a log.
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    if cfg!(windows) {
        uri.push_str("///");
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b':' => {
                uri.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// Creates a folder, and those above it, for this user alone.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Makes a file that is created readable for this user alone.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_migrated_to_the_latest_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(&folder.path().join("a?b#c%d ü.db")).unwrap();
        let open = |steps: &[&str]| open_writer(&path, steps, None, || Ok(()));
        drop(open(schema::STEPS).unwrap());
        let mut steps = schema::STEPS.to_vec();
        steps.push("CREATE TABLE later (x)");
        drop(open(&steps).unwrap());
        let (connection, ()) = open(&steps).unwrap();
        connection
            .execute("INSERT INTO later VALUES (1)", [])
            .unwrap();
        drop(connection);

        let before = fs::read(&path).unwrap();
        let error = open(schema::STEPS).unwrap_err().into_error(&path);
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        let text = error.to_string();
        let known = schema::STEPS.len();
        let (later, known) = (format!("version {}", known + 1), format!("up to {known}"));
        assert!(text.contains(&later) && text.contains(&known), "{text}");
        assert_eq!(fs::read(&path).unwrap(), before);
        // A step that fails leaves the version before.
        steps.push("CREATE TABLE more (x); THIS FAILS");
        assert!(open(&steps).is_err());
        drop(open(&steps[..steps.len() - 1]).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_connection_waits_as_long_as_the_documentation_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(&folder.path().join("x.db")).unwrap();
        let connection = connect(&path).unwrap();
        let wait = connection.pragma_query_value(None, "busy_timeout", |row| row.get(0));
        assert_eq!(wait.map(Duration::from_millis), Ok(BUSY_TIMEOUT));
        let seconds = BUSY_TIMEOUT.as_secs();
        let text = format!("up to {seconds} s when another process is writing");
        assert!(include_str!("mod.rs").contains(&text), "expected {text:?}");
    }

    #[test]
    fn a_process_that_reads_delays_the_switch_to_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(&folder.path().join("x.db")).unwrap();
        let mut other = connect(&path).unwrap();
        let transaction = other.transaction().unwrap();
        schema::migrate(&transaction, 0, schema::STEPS).unwrap();
        transaction.commit().unwrap();
        let reading = other.transaction().unwrap();
        let count = "SELECT count(*) FROM sessions";
        let count = reading.query_row(count, [], |row| row.get::<_, u32>(0));
        assert_eq!(count, Ok(0));
        std::thread::scope(|scope| {
            let open = || open_writer(&path, schema::STEPS, None, || Ok(()));
            let opening = scope.spawn(open);
            std::thread::sleep(Duration::from_millis(200));
            assert!(!opening.is_finished());
            drop(reading);
            assert!(opening.join().unwrap().is_ok());
        });
    }
}
