//! What can go wrong, sorted by who can do something about it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::json::Json;
use crate::jsonrpc::clip;
use crate::v1::{Error as RpcError, ErrorCode};

/// The result of this crate's calls and of every handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error that a handler returns.
pub type HandlerError = Error;

/// The result of a handler.
pub type HandlerResult<T> = Result<T, HandlerError>;

/// Why a call, a handler or a connection failed.
///
/// A handler returns it too: [`Error::Response`] goes to the peer as it is,
/// anything else becomes `-32603` (internal error) with this error's text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The peer answered with an error object; or, from a handler, the error object to answer.
    Response {
        /// The method that was called; empty in an error that a handler makes.
        method: String,
        /// The error object as it stands on the wire.
        error: Box<RpcError>,
    },
    /// The connection has ended, with the reason; the call may or may not have been handled.
    Closed(Closed),
    /// The peer's result does not fit the method's type, even after all that the schema forgives.
    Decode {
        /// The method that was called.
        method: String,
        /// JSON Pointer into the result.
        path: String,
        /// What was expected and what was found.
        reason: String,
    },
    /// The agent answered `initialize` with a version that the client does not speak. The
    /// protocol wants the client to close the connection and to say so.
    UnsupportedVersion {
        /// The version of the agent's answer.
        version: u16,
    },
    /// A message of ours has no JSON form, such as a map whose keys are not strings.
    Encode {
        /// The method of the message.
        method: String,
        /// What the serializer said.
        reason: String,
    },
    /// The call was made while a notification of the same session was being handled, and so
    /// much else arrived meanwhile that it had to be given up.
    Overloaded {
        /// The method that was called.
        method: String,
    },
    /// No answer came within the caller's timeout; the request was cancelled.
    TimedOut {
        /// The method that was called.
        method: String,
        /// The timeout.
        after: Duration,
    },
    /// The transport could not be opened.
    Io(Arc<io::Error>),
}

impl Error {
    /// An error answer with a code of your choice. See [`ErrorCode`] for those of the protocol.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::from(RpcError::new(code, message))
    }

    /// `-32602`: the params are of the right shape but make no sense; `path` is a JSON Pointer.
    pub fn invalid_params(path: &str, reason: impl fmt::Display) -> Self {
        let message = format!("invalid params at {path:?}: {reason}");
        let data = serde_json::json!({ "path": path, "error": reason.to_string() });
        Self::from(RpcError::new(ErrorCode::INVALID_PARAMS, message).with_data(Json::from(data)))
    }

    /// `-32601`: nobody serves this method here.
    pub fn method_not_found(method: &str) -> Self {
        let data = serde_json::json!({ "method": method });
        let error = RpcError::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("method not found: {}", clip(method)),
        );
        Self::from(error.with_data(Json::from(data)))
    }

    /// `-32002`: a session, file or other thing that the params name does not exist.
    pub fn resource_not_found(what: impl fmt::Display) -> Self {
        Self::new(ErrorCode::RESOURCE_NOT_FOUND, format!("not found: {what}"))
    }

    /// `-32000`: the client must authenticate first, and this code means nothing else.
    pub fn auth_required() -> Self {
        Self::new(
            ErrorCode::AUTHENTICATION_REQUIRED,
            "authentication required",
        )
    }

    /// `-32800`: the request was cancelled. A cancelled prompt is a result, not this error.
    pub fn cancelled() -> Self {
        Self::new(ErrorCode::REQUEST_CANCELLED, "request cancelled")
    }

    /// `-32603`: a fault on this side.
    pub fn internal(reason: impl fmt::Display) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, reason.to_string())
    }

    /// The error object of [`Error::Response`].
    pub fn as_response(&self) -> Option<&RpcError> {
        match self {
            Self::Response { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The error code of [`Error::Response`].
    pub fn code(&self) -> Option<ErrorCode> {
        self.as_response().map(|error| error.code)
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// The object that answers a request whose handler failed like this.
    pub(crate) fn into_rpc(self) -> RpcError {
        match self {
            Self::Response { error, .. } => *error,
            other => RpcError::new(ErrorCode::INTERNAL_ERROR, other.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response { method, error } => {
                write!(f, "{method}: {} (code {})", error.message, error.code)
            }
            Self::Closed(reason) => write!(f, "the connection is closed: {reason}"),
            Self::Decode {
                method,
                path,
                reason,
            } => write!(
                f,
                "the result of {method} does not fit its type at {path:?}: {reason}"
            ),
            Self::UnsupportedVersion { version } => write!(
                f,
                "the agent speaks protocol version {version}, which this client does not"
            ),
            Self::Encode { method, reason } => {
                write!(
                    f,
                    "a message of {method} cannot be written as JSON: {reason}"
                )
            }
            Self::Overloaded { method } => write!(
                f,
                "{method} was given up: too much arrived while a notification handler waited for it"
            ),
            Self::TimedOut { method, after } => {
                write!(f, "{method} timed out after {after:?}")
            }
            Self::Io(error) => write!(f, "cannot open the transport: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Self::Response {
            method: String::new(),
            error: Box::new(error),
        }
    }
}

#[cfg(feature = "v2")]
impl From<crate::v2::Error> for Error {
    fn from(error: crate::v2::Error) -> Self {
        let data = error.data.map(|data| match serde_json::to_value(&data) {
            Ok(data) => Json::from(data),
            Err(unwritable) => Json::from(serde_json::json!(unwritable.to_string())),
        });
        let same = RpcError::new(error.code.get(), error.message);
        Self::from(match data {
            Some(data) => same.with_data(data),
            None => same,
        })
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// Why a connection ended, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed(Arc<str>);

impl Closed {
    /// A reason, without a final period.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
