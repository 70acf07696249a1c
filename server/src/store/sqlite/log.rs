//! Making commits survive a loss of power.
//!
//! A commit appends to SQLite's write-ahead log, in the page cache of the operating system, where it
//! survives the end of the process. With `synchronous = NORMAL` SQLite does not wait for the disk
//! then; it syncs the log before it moves it into the database, and begins it anew only when the
//! database is synced. So one sync of the log's data makes all commits before durable.
//!
//! SQLite's own sync of each commit (`FULL`) would hold the write lock meanwhile, and write the times
//! of the file as well, which costs a transaction of the file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::failure::{self, Failure};
use crate::store::{StoreError, StoreErrorKind};

/// The write-ahead log of a database. SQLite keeps the file while a connection is open, and has no
/// locks on it that closing another handle would release.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Whether a sync has failed. The system reports that once, and may lose what it could not
    /// write.
    failed: bool,
}

impl Log {
    /// Opens the log of a database that a connection uses.
    pub(super) fn open(database: &Path) -> io::Result<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        // Some systems sync only files that are open for writing.
        Ok(OpenOptions::new().write(true).open(path)?.into())
    }

    /// Syncs what was committed before.
    pub(super) fn sync(
        &mut self,
        connection: &Connection,
        database: &Path,
    ) -> Result<(), StoreError> {
        if !self.failed {
            let Err(error) = self.file.sync_data() else {
                return Ok(());
            };
            self.failed = true;
            let error = failure::file(database, "sync the write-ahead log", error);
            tracing::warn!(%error, "the write-ahead log is moved into the database");
        }
        // SQLite copies the log, and syncs the copy.
        let sql = "PRAGMA wal_checkpoint(FULL)";
        let moved =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let (is_busy, frames, moved): (bool, i64, i64) =
            moved.map_err(|error| Failure::from(error).into_error(database))?;
        if is_busy || moved < frames {
            let message = format!(
                "cannot move the write-ahead log of the session store {} into the database: \
                 another process uses it",
                database.display()
            );
            return Err(StoreError::new(StoreErrorKind::Unavailable, message));
        }
        self.failed = false;
        Ok(())
    }
}

impl From<File> for Log {
    fn from(file: File) -> Self {
        Self {
            file,
            failed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_sync_the_log_is_moved_and_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        let write = "PRAGMA journal_mode = WAL; CREATE TABLE kept (text)";
        connection.execute_batch(write).unwrap();
        let size = || std::fs::metadata(&path).unwrap().len();
        let mut log = Log::open(&path).unwrap();
        let before = size();
        log.sync(&connection, &path).unwrap();
        assert_eq!(size(), before);
        // As if the sync before had failed, and been reported.
        log.failed = true;
        log.sync(&connection, &path).unwrap();
        assert!(size() > before, "the log was not moved");
        assert!(!log.failed);
    }
}
