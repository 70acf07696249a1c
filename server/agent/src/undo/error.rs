//! Why a journal cannot be used.

use std::io;
use std::path::PathBuf;

use acp_sdk::ErrorCode;
use acp_server::HandlerError;

use super::Direction;

/// Why a call on a [`Journal`](super::Journal) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal's own files cannot be read or written.
    #[error("cannot {doing} {path} of the undo journal: {error}", path = .path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another process or another value has it open.
    #[error("the undo journal {path} is in use; close the session there first", path = .0.display())]
    InUse(PathBuf),
    /// A path that cannot be kept.
    #[error("cannot keep {path} for undo: {reason}", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A turn has begun and not ended.
    #[error("a turn is running; wait for its end or cancel it, then try again")]
    TurnOpen,
    /// No turn has begun.
    #[error("no turn has begun in the undo journal")]
    NoTurn,
    /// There is no turn to undo or to redo.
    #[error("there is nothing to {0}")]
    Nothing(Direction),
}

impl JournalError {
    /// Returns the error that answers a request: -32600 if there is nothing to restore or a turn is
    /// running, -32602 for a path, otherwise -32603.
    #[must_use]
    pub fn answer(&self) -> HandlerError {
        let code = match self {
            Self::Io { .. } | Self::InUse(_) => ErrorCode::INTERNAL_ERROR,
            Self::Path { .. } => ErrorCode::INVALID_PARAMS,
            Self::TurnOpen | Self::NoTurn | Self::Nothing(_) => ErrorCode::INVALID_REQUEST,
        };
        HandlerError::new(code, self.to_string())
    }
}
