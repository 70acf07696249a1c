//! What can go wrong in a turn, sorted by who can do something about it.

use std::fmt;

use acp_sdk::v1::{ErrorCode, SessionId};

use crate::Capability;

/// The result of a handler and of what it calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler, or something that it called, failed.
///
/// An error that a handler returns becomes the answer to the client's request; in a
/// cancelled turn it becomes the stop reason `cancelled` instead.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client did not offer what the call needs, so nothing was sent. Ask
    /// [`Turn::offers`](crate::Turn::offers) first to do without.
    #[error("the client does not offer {0} (clientCapabilities.{path})", path = .0.path())]
    Missing(Capability),
    /// The turn has been cancelled; a handler passes this on and ends.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The turn has ended already: something outlived the handler's future.
    #[error("the turn of session {0} is over, so {1} cannot be sent")]
    Over(SessionId, &'static str),
    /// The client chose a permission option that was not among those offered.
    #[error("the client chose the permission option {0:?}, which was not offered")]
    NotOffered(String),
    /// The session's events could not be kept or read.
    #[error("the store of session {session}: {reason}")]
    Store {
        /// The session.
        session: SessionId,
        /// What the store said.
        reason: String,
    },
    /// A call to the client failed, or the handler refuses the client's request like this, as
    /// with [`acp_sdk::Error::invalid_params`]. Only the handler's own refusal is the client's
    /// answer as it is: what a call was answered with says nothing about the request that the
    /// handler is busy with, so it becomes `-32603` with the call's method in its words.
    #[error(transparent)]
    Call(#[from] acp_sdk::Error),
    /// The handler's own reason; see [`Error::failed`].
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// A fault of the agent's own, in words for a person. The client sees it as `-32603`.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

impl From<Error> for acp_sdk::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Call(Self::Response { method, error }) if !method.is_empty() => {
                let reason = format!("{method} failed: {} (code {})", error.message, error.code);
                Self::new(ErrorCode::INTERNAL_ERROR, reason)
            }
            Error::Call(error) => error,
            other => Self::new(ErrorCode::INTERNAL_ERROR, other.to_string()),
        }
    }
}
