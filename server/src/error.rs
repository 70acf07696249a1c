//! What can go wrong in a turn, sorted by who can do something about it.

use std::fmt;

use acp_sdk::v1::SessionId;

use crate::Capability;

/// The result of the calls on a turn.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call on a turn failed.
///
/// In a handler, `?` converts it into `-32603` (internal error) with this text; in a cancelled
/// turn, the answer is the stop reason `cancelled` instead.
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
    /// A call to the client failed.
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
