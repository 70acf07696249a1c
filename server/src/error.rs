//! The errors of calls on a turn or a session, sorted by who can do something about them.

use std::fmt;
use std::sync::Arc;

use acp_sdk::RpcError;
use acp_sdk::v1::{ErrorCode, SessionId};

use crate::Capability;
use crate::event::QuestionId;
use crate::store::StoreError;

/// The result of calls on a turn or a session.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call on a turn or a session failed.
///
/// In a handler, `?` converts it into `-32603` (internal error) with this text; in a cancelled
/// turn, the answer is the stop reason `cancelled` instead.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No attached client offers what the call needs, so nothing was sent; and for files and
    /// terminals, [`LocalTools`](crate::LocalTools) is off. Check
    /// [`Turn::offers`](crate::Turn::offers) first.
    #[error("no attached client offers {0} (clientCapabilities.{path})", path = .0.path())]
    Unsupported(Capability),
    /// The turn was cancelled; a handler passes this on and ends.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The turn has ended, so nothing can be sent in it.
    #[error("the turn of session {0} has ended; {1} cannot be sent any more")]
    TurnEnded(SessionId, &'static str),
    /// The session is closed.
    #[error("session {0} is closed; load or resume it first")]
    SessionClosed(SessionId),
    /// The prompt was refused, because of a limit or a policy.
    #[error("session {session} refused the prompt: {reason}")]
    PromptRefused {
        /// The session.
        session: SessionId,
        /// The limit or the policy.
        reason: &'static str,
    },
    /// The server has no room for it now, as the text says. Another attempt may succeed later.
    #[error("{0}")]
    Full(String),
    /// The server is about to end, and opens no session any more. Another server may.
    #[error("the server is shutting down; no session can be opened any more")]
    Ending,
    /// The answer to a permission request is an option that was not among those offered.
    #[error("the permission option {0:?} was chosen, which was not offered")]
    UnknownOption(String),
    /// The question has been answered or withdrawn already, or there is none.
    #[error("question {question} of session {0} is not pending; it was answered or withdrawn", question = .1.0)]
    NotPending(SessionId, QuestionId),
    /// The session's events could not be written or read.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    /// The data of a session has no form as the handler's type, or the type none as JSON.
    #[error("the data of session {session} does not fit `{expected}`: {reason}")]
    Data {
        /// The session.
        session: SessionId,
        /// The type.
        expected: &'static str,
        /// Where they differ.
        reason: String,
    },
    /// A form cannot ask for a type, or the answer does not fit the type.
    #[cfg(feature = "schemars")]
    #[error("`{expected}` cannot be asked for in a form: {reason}")]
    Form {
        /// The type.
        expected: &'static str,
        /// The field, and what a form can have there.
        reason: String,
    },
    /// A call to the client failed.
    #[error(transparent)]
    Call(#[from] acp_sdk::Error),
    /// A file or command on the agent's own machine failed; see
    /// [`LocalTools`](crate::LocalTools).
    #[error("local `{method}` failed: {error}")]
    Local {
        /// The method that a client would have been called with.
        method: &'static str,
        /// What a client would have answered.
        error: Box<RpcError>,
    },
    /// Another agent, which was to do a part of the turn, has failed.
    #[error("the delegated task failed: {0}")]
    Delegate(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The handler's own reason; see [`Error::failed`].
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// Returns the code of a client's error, or that of a file or command on the agent's own
    /// machine, such as [`ErrorCode::RESOURCE_NOT_FOUND`] for a file that does not exist.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Call(error) => error.code(),
            Self::Local { error, .. } => Some(error.code),
            _ => None,
        }
    }

    /// Creates an error with the handler's own reason. The client sees it as `-32603`.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}
