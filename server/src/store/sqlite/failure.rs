//! Errors of SQLite as errors of a store.

use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::store::{StoreError, StoreErrorKind};

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

fn database(path: &Path, error: Error) -> StoreError {
    let (kind, remedy) = judge(&error);
    let mut message = format!("session store {}: {error}", path.display());
    if let Some(remedy) = remedy {
        message.push_str(". ");
        message.push_str(remedy);
    }
    StoreError::new(kind, message).with_source(error)
}

fn judge(error: &Error) -> (StoreErrorKind, Option<&'static str>) {
    use StoreErrorKind::{Corrupt, Full, Unavailable};
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (Full, Some("Free space, or delete sessions")),
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
