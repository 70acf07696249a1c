//! Errors, sorted by who can act on them.
//!
//! [`Error`] is why a call or a connection failed. [`HandlerError`] is what a handler answers a
//! request with. [`CloseReason`] is why a connection ended. The three never stand for each other:
//! an [`Error`] that a handler propagates with `?` becomes an internal error of that handler.

mod close_reason;
mod handler_error;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use self::close_reason::{CloseReason, ProcessExit};
pub use self::handler_error::{HandlerError, HandlerResult};
use crate::jsonrpc::{ErrorCode, RpcError};

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call or a connection failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The peer answered the request with an error object.
    Response {
        /// The method that was called.
        method: String,
        /// The error object as received.
        error: Box<RpcError>,
    },
    /// The peer's result does not match the method's type, even after all leniency that the
    /// schema declares.
    Decode {
        /// The method that was called.
        method: String,
        /// JSON Pointer into the result.
        path: String,
        /// The expected and the actual value.
        reason: String,
    },
    /// The peer's response to the request cannot be used: it has neither `result` nor `error`, or
    /// both, or exceeds
    /// [`max_message_bytes`](crate::ConnectionBuilder::max_message_bytes).
    InvalidResponse {
        /// The method that was called.
        method: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// The agent answered `initialize` with a protocol version that the client does not offer.
    ///
    /// The specification asks the client to close the connection and to inform the user.
    UnsupportedVersion {
        /// The version in the agent's answer.
        version: u16,
    },
    /// The connection has ended. The peer may or may not have handled the request.
    Closed(CloseReason),
    /// No answer arrived within the timeout of the call; the request has been cancelled.
    TimedOut {
        /// The method that was called.
        method: String,
        /// The timeout.
        after: Duration,
    },
    /// The call was aborted because too much input arrived while a notification handler of the
    /// same connection waited for its answer.
    Overloaded {
        /// The method that was called.
        method: String,
    },
    /// The params or the result cannot be serialized, such as a map whose keys are not strings.
    Encode {
        /// The method of the message.
        method: String,
        /// The serializer's error.
        reason: String,
    },
    /// A transport could not be opened.
    Io {
        /// The operation and its object, such as ``listen on `/run/agent.sock` ``.
        operation: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
}

impl Error {
    /// Creates [`Error::Io`]. `operation` completes "cannot …".
    pub fn io(operation: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            operation: operation.into(),
            source: Arc::new(source),
        }
    }

    /// Returns the error object of [`Error::Response`].
    #[must_use]
    pub fn as_response(&self) -> Option<&RpcError> {
        match self {
            Self::Response { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the error code of [`Error::Response`].
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.as_response().map(|error| error.code)
    }

    /// Returns the reason of [`Error::Closed`].
    #[must_use]
    pub fn close_reason(&self) -> Option<&CloseReason> {
        match self {
            Self::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.close_reason().is_some()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response { method, error } => write!(f, "`{method}` failed: {error}"),
            Self::Decode {
                method,
                path,
                reason,
            } => write!(f, "invalid result of `{method}` at {path:?}: {reason}"),
            Self::InvalidResponse { method, reason } => {
                write!(f, "invalid response to `{method}`: {reason}")
            }
            Self::UnsupportedVersion { version } => write!(
                f,
                "unsupported protocol version {version} in the agent's answer to `initialize`"
            ),
            Self::Closed(reason) => write!(f, "connection closed: {reason}"),
            Self::TimedOut { method, after } => write!(f, "`{method}` timed out after {after:?}"),
            Self::Overloaded { method } => write!(
                f,
                "`{method}` aborted: too much input arrived while a notification handler waited for its answer"
            ),
            Self::Encode { method, reason } => write!(f, "cannot serialize `{method}`: {reason}"),
            Self::Io { operation, source } => write!(f, "cannot {operation}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Response { error, .. } => Some(&**error),
            Self::Closed(reason) => reason.io_error().map(|error| error as _),
            Self::Io { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
