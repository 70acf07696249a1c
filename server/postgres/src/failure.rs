//! Failures of the database as errors of a store.

use std::error::Error as StdError;
use std::fmt;

use acp_server::store::{StoreError, StoreErrorKind};
use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why a piece of work on the database failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was refused before anything was written.
    Refused(StoreError),
    /// The database has something that this crate never writes.
    Corrupt(String),
    /// No connection was had: nothing was sent.
    NotSent(PoolError),
    /// The database refused a statement, or the connection broke.
    Database(tokio_postgres::Error),
    /// There was no answer in time.
    NoAnswer,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    /// Returns whether what was sent may have been done, or may be done later.
    ///
    /// A statement that the database answers with an error was rolled back. One that ends the
    /// connection says nothing about the transaction.
    pub(crate) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Corrupt(_) | Self::NotSent(_) => false,
            Self::NoAnswer => true,
            Self::Database(error) => error.as_db_error().is_none_or(|error| {
                is_fatal(error)
                    || *error.code() == SqlState::TRANSACTION_RESOLUTION_UNKNOWN
                    || *error.code() == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
            }),
        }
    }

    /// Returns whether the connection cannot be used any more.
    pub(crate) fn ends_connection(&self) -> bool {
        match self {
            Self::Database(error) => error.as_db_error().is_none_or(is_fatal),
            Self::NoAnswer => true,
            _ => false,
        }
    }

    /// Returns whether a pooler refused the parameters that a connection begins with.
    pub(crate) fn is_of_parameters(&self) -> bool {
        let Self::NotSent(PoolError::Backend(error)) = self else {
            return false;
        };
        error.code() == Some(&SqlState::PROTOCOL_VIOLATION)
    }

    /// Returns the unique constraint that a statement violated.
    pub(crate) fn constraint(&self) -> Option<&str> {
        let Self::Database(error) = self else {
            return None;
        };
        let error = error.as_db_error()?;
        let is_taken = *error.code() == SqlState::UNIQUE_VIOLATION;
        error.constraint().filter(|_| is_taken)
    }

    /// Returns the error for the caller. `place` is the database.
    pub(crate) fn into_error(self, place: &str) -> StoreError {
        use StoreErrorKind::{Corrupt, Unavailable};
        let message = |what: &dyn fmt::Display| format!("session store {place}: {what}");
        match self {
            Self::Refused(error) => error,
            Self::Corrupt(what) => {
                StoreError::new(Corrupt, message(&format_args!("it is damaged: {what}")))
            }
            Self::NotSent(PoolError::Timeout(TimeoutType::Wait)) => {
                let what = "all connections are in use. Raise `pool_size`, or try again";
                StoreError::new(Unavailable, message(&what))
            }
            Self::NotSent(PoolError::Timeout(_)) => {
                let what = "connecting timed out. Check that the database runs and can be reached";
                StoreError::new(Unavailable, message(&what))
            }
            Self::NotSent(PoolError::Backend(error)) => database(&error, place),
            Self::NotSent(error) => StoreError::new(Unavailable, message(&error)),
            Self::NoAnswer => {
                let what = "no answer in time. Check that the database can be reached";
                StoreError::new(Unavailable, message(&what))
            }
            Self::Database(error) => database(&error, place),
        }
    }
}

fn is_fatal(error: &DbError) -> bool {
    matches!(
        error.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    )
}

fn database(error: &tokio_postgres::Error, place: &str) -> StoreError {
    let Some(refusal) = error.as_db_error() else {
        let mut message = format!("session store {place}: {error}");
        // The text of the error alone is "error connecting to server".
        let mut source = error.source();
        while let Some(error) = source {
            message.push_str(&format!(": {error}"));
            source = error.source();
        }
        return StoreError::new(StoreErrorKind::Unavailable, message);
    };
    let (kind, remedy) = judge(refusal.code().code());
    let code = refusal.code().code();
    let mut message = format!(
        "session store {place}: {} (SQLSTATE {code})",
        refusal.message()
    );
    if let Some(remedy) = remedy {
        message.push_str(". ");
        message.push_str(remedy);
    }
    StoreError::new(kind, message)
}

/// Returns what a SQLSTATE means for the caller, and what to do.
fn judge(code: &str) -> (StoreErrorKind, Option<&'static str>) {
    use StoreErrorKind::{Conflict, Corrupt, Full, Unavailable};
    match code {
        "23505" => (Conflict, None),
        // Out of memory, too many connections: another attempt may succeed.
        "53200" | "53300" | "53000" => (Unavailable, Some("Try again later")),
        code if code.starts_with("53") => (Full, Some("Free space, or delete sessions")),
        code if code.starts_with("54") => (Full, Some("An event or record is too large")),
        "25006" => (
            Unavailable,
            Some(
                "The server is a read-only replica. Name the primary, with \
                 `target_session_attrs=read-write` if there are several hosts",
            ),
        ),
        // Tables or columns are missing, values are not of their type, indexes are damaged.
        "42P01" | "42703" | "42883" | "3F000" => (
            Corrupt,
            Some("The tables are not those of this version. Restore them from a backup"),
        ),
        code if code.starts_with("22") || code.starts_with("XX") => (Corrupt, None),
        "28P01" | "28000" => (Unavailable, Some("Check user and password")),
        "42501" => (
            Unavailable,
            Some("The role needs all rights on the tables, and CREATE on the schema"),
        ),
        // Connections (08), conflicts of transactions (40), timeouts and shutdown (57), and the rest.
        _ => (Unavailable, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kinds() {
        use StoreErrorKind::{Conflict, Corrupt, Full, Unavailable};
        let cases = [
            ("23505", Conflict),
            ("53100", Full),
            ("53300", Unavailable),
            ("57P01", Unavailable),
            ("57P03", Unavailable),
            ("57014", Unavailable),
            ("08006", Unavailable),
            ("40001", Unavailable),
            ("40P01", Unavailable),
            ("25006", Unavailable),
            ("42P01", Corrupt),
            ("22021", Corrupt),
            ("XX001", Corrupt),
        ];
        for (code, kind) in cases {
            assert_eq!(judge(code).0, kind, "{code}");
        }
    }
}
