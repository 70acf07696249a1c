//! Errors of SQLite as errors of a store.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::store::{StoreError, StoreErrorKind};

/// What to do when the disk is full, or the limit of pages is reached.
const NO_SPACE: &str = "Free space, or delete sessions";

/// Free bytes that are too few for a store to open and to write: its shared memory has 32 KiB.
#[cfg(unix)]
const LEAST_BYTES: u64 = 64 << 10;

/// Why a piece of work on the database failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was refused before anything was written.
    Refused(StoreError),
    /// The database has something that this crate never writes.
    Corrupt(String),
    /// SQLite failed; the transaction must be rolled back.
    Database(Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    /// Returns the error for the caller.
    pub(super) fn into_error(self, path: &Path) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Corrupt(what) => {
                let message = format!("the session store {} is damaged: {what}", path.display());
                StoreError::new(StoreErrorKind::Corrupt, message)
            }
            Self::Database(error) => database(path, error),
        }
    }
}

/// Returns the error of a file of the store.
pub(super) fn file(path: &Path, what: &str, error: io::Error) -> StoreError {
    let mut message = format!(
        "cannot {what} of the session store {}: {error}",
        path.display()
    );
    let kind = kind_of(&error);
    if kind == StoreErrorKind::Full {
        message.push_str(". ");
        message.push_str(NO_SPACE);
    }
    StoreError::new(kind, message).with_source(error)
}

/// Returns whether a file could not be written for lack of space, or for another reason.
pub(super) fn kind_of(error: &io::Error) -> StoreErrorKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        _ => StoreErrorKind::Unavailable,
    }
}

fn database(path: &Path, error: Error) -> StoreError {
    let (kind, remedy) = match error.sqlite_error_code() {
        // SQLite says so only of some writes.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(path) => {
            (StoreErrorKind::Full, Some(NO_SPACE))
        }
        _ => judge(&error),
    };
    let mut message = format!("session store {}: {error}", path.display());
    if let Some(remedy) = remedy {
        message.push_str(". ");
        message.push_str(remedy);
    }
    StoreError::new(kind, message).with_source(error)
}

/// Returns whether the file system of a store has no space for its files.
fn is_full(path: &Path) -> bool {
    #[cfg(unix)]
    {
        let folder = path.parent().unwrap_or(path);
        rustix::fs::statvfs(folder).is_ok_and(|free| {
            let bytes = free.f_bavail.saturating_mul(free.f_frsize);
            // Some file systems have no fixed number of files.
            bytes < LEAST_BYTES || (free.f_files > 0 && free.f_favail == 0)
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

fn judge(error: &Error) -> (StoreErrorKind, Option<&'static str>) {
    use StoreErrorKind::{Corrupt, Full, Unavailable};
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (Full, Some(NO_SPACE)),
        Some(ErrorCode::TooBig) => (Full, Some("An event or record is too large for SQLite")),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
            Corrupt,
            Some("Restore the file from a backup, or move it away to begin anew"),
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (Unavailable, Some("Another process is writing; try again"))
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => (
            Unavailable,
            Some("The file and its folder must be writable for this user"),
        ),
        Some(_) => (Unavailable, None),
        // A value that is not of the column's type, or a statement that the tables do not fit.
        None => (Corrupt, None),
    }
}
