//! What a handler answers a request with when it fails.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::json::Json;
use crate::jsonrpc::{ErrorCode, RpcError, clip};

/// The result of a handler.
pub type HandlerResult<T> = Result<T, HandlerError>;

/// The error response to a request, returned by its handler.
///
/// `?` converts every error into `-32603` (internal error), with the error's text as the message:
/// `std::error::Error`, `anyhow::Error`, strings. Two exceptions become the answer unchanged: the
/// error object ([`RpcError`](crate::RpcError)), and a `HandlerError` itself.
///
/// The texts of the error's sources may name files and addresses of this machine. They are logged,
/// and sent to the peer only on demand
/// ([`expose_sources`](crate::ConnectionBuilder::expose_sources)).
///
/// An error object that the *peer* answered with ([`Error::Response`](crate::Error::Response))
/// is not forwarded: its code describes the nested call, not this request. A proxy forwards it
/// explicitly, with `HandlerError::from(error)` on the object.
///
/// Like `anyhow::Error`, this type does not implement `std::error::Error`, because it could not
/// convert from all of them otherwise. It converts into a `Box<dyn Error>`, so `?` works in a
/// `fn main() -> Result<(), Box<dyn Error>>`; elsewhere, [`into_error`](Self::into_error) converts it.
#[derive(Debug, Clone)]
pub struct HandlerError {
    response: Box<RpcError>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl HandlerError {
    /// Creates an error response with a code and a message. [`ErrorCode`] has constants for the
    /// codes of JSON-RPC and ACP.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::response(RpcError::new(code, message))
    }

    /// `-32602` (invalid params): the params have the right types and an invalid value. `path` is
    /// a JSON Pointer into the params.
    pub fn invalid_params(path: &str, reason: impl fmt::Display) -> Self {
        let message = format!("invalid params at {path:?}: {reason}");
        let data = serde_json::json!({ "path": path, "error": reason.to_string() });
        Self::response(
            RpcError::new(ErrorCode::INVALID_PARAMS, message).with_data(Json::from(data)),
        )
    }

    /// `-32601` (method not found).
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        let message = format!("method not found: {}", clip(method));
        let data = serde_json::json!({ "method": method });
        Self::response(
            RpcError::new(ErrorCode::METHOD_NOT_FOUND, message).with_data(Json::from(data)),
        )
    }

    /// `-32002` (resource not found): a session, file or other object that the params name does
    /// not exist.
    pub fn resource_not_found(resource: impl fmt::Display) -> Self {
        let message = format!("Resource not found: {resource}");
        Self::new(ErrorCode::RESOURCE_NOT_FOUND, message)
    }

    /// `-32000` (authentication required): the client must authenticate first.
    #[must_use]
    pub fn auth_required() -> Self {
        let message = "authentication required";
        Self::new(ErrorCode::AUTHENTICATION_REQUIRED, message)
    }

    /// `-32800` (request cancelled). A cancelled prompt answers with the stop reason
    /// `cancelled` instead of this error.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ErrorCode::REQUEST_CANCELLED, "request cancelled")
    }

    /// `-32603` (internal error) with a message of its own.
    pub fn internal(reason: impl fmt::Display) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, reason.to_string())
    }

    /// Creates an error response from an error object.
    #[must_use]
    pub fn response(error: RpcError) -> Self {
        Self {
            response: Box::new(error),
            source: None,
        }
    }

    /// Returns the error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.response.code
    }

    /// Returns the error object that answers the request.
    #[must_use]
    pub fn as_response(&self) -> &RpcError {
        &self.response
    }

    /// Converts into the error object that answers the request.
    #[must_use]
    pub fn into_response(self) -> RpcError {
        *self.response
    }

    /// Converts into an error for functions that are no handlers. `Display` has the message and the
    /// code, `Debug` the texts of the sources too, as the end of `main` prints them.
    #[must_use]
    pub fn into_error(self) -> impl StdError + Send + Sync + 'static {
        Failure(self)
    }

    /// Returns the text of the error that `?` converted, with those of its sources; `None` if it has
    /// none beyond the message.
    pub(crate) fn with_sources(&self) -> Option<String> {
        let source = self.source.as_deref()?;
        source.source().map(|_| with_sources(source))
    }

    /// Returns the error that `?` converted.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.source.as_deref()
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.response.fmt(f)
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = error.into();
        let error = match error.downcast::<RpcError>() {
            Ok(response) => {
                return Self {
                    response,
                    source: None,
                };
            }
            Err(error) => error,
        };
        let message = error.to_string();
        Self {
            response: Box::new(RpcError::new(ErrorCode::INTERNAL_ERROR, message)),
            source: Some(Arc::from(error)),
        }
    }
}

/// A [`HandlerError`] as an error like any other.
struct Failure(HandlerError);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.with_sources() {
            Some(text) => f.write_str(&text),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of the error itself is the message.
        self.0.source()?.source()
    }
}

// Not for `Box<dyn Error + Send + Sync>`: `From` above would apply to this type itself.
impl From<HandlerError> for Box<dyn StdError> {
    fn from(error: HandlerError) -> Self {
        Box::new(error.into_error())
    }
}

/// The texts of an error and its sources, joined by `: `. A source whose text the one before
/// it repeats already is left out.
fn with_sources(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut last = text.clone();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !last.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        last = next;
        source = error.source();
    }
    text
}
