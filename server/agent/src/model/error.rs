//! Why a model did not answer.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A failure of a model. Its text names provider and cause.
#[derive(Debug)]
pub struct ModelError {
    /// The [name](super::Model::name) of the model.
    pub model: String,
    /// Who can do something about it.
    pub kind: ErrorKind,
    /// What the provider said, or what happened on the way to it.
    pub message: String,
    /// The cause, if it is an error of its own.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kinds of failures of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing or not accepted.
    Credentials,
    /// Too many requests or tokens; the provider may have told how long to wait.
    RateLimit {
        /// The time that the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// The provider cannot answer now.
    Unavailable,
    /// The provider was not reached, or the connection was lost.
    Network,
    /// The conversation has more tokens than the model takes.
    TooLong,
    /// The provider does not accept the request.
    Invalid,
}

impl ModelError {
    /// Creates an error of a model.
    pub fn new(model: impl Into<String>, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::RateLimit { .. } | ErrorKind::Unavailable | ErrorKind::Network
        )
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, message, .. } = self;
        match self.kind {
            ErrorKind::Credentials => {
                write!(
                    f,
                    "the model {model} refused the credentials: {message}; check its key"
                )
            }
            ErrorKind::RateLimit { .. } => {
                write!(
                    f,
                    "the model {model} has a rate limit: {message}; try again later"
                )
            }
            ErrorKind::Unavailable => {
                write!(
                    f,
                    "the model {model} is unavailable: {message}; try again later"
                )
            }
            ErrorKind::Network => {
                write!(
                    f,
                    "the model {model} was not reached: {message}; check the network and the URL"
                )
            }
            ErrorKind::TooLong => write!(
                f,
                "the conversation is too long for the model {model}: {message}; begin a new session"
            ),
            ErrorKind::Invalid => write!(f, "the model {model} refused the request: {message}"),
        }
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
