//! The error of starting an agent or opening a session.

use acp_client::Error;
use acp_sdk::text::printable;

use super::exit::{Code, explained};
use super::selection;

/// The error of starting an agent or opening a session.
#[derive(Debug)]
pub(super) enum OpeningFailure {
    Error(Error),
    /// The requested session is not available; the message has the remedy.
    Session(String),
    /// An argument is invalid.
    Usage(String),
    /// Authentication failed.
    Login(String),
}

impl OpeningFailure {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Error(error) => Code::of_error(error),
            Self::Session(_) => Code::Failed,
            Self::Usage(_) => Code::Usage,
            Self::Login(_) => Code::Refused,
        }
    }

    /// Returns the event and the remedy, without what would control a terminal.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Self::Error(error) => explained(error),
            Self::Session(message) | Self::Usage(message) | Self::Login(message) => {
                vec![printable(message)]
            }
        }
    }
}

impl From<Error> for OpeningFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<selection::Failure> for OpeningFailure {
    fn from(failure: selection::Failure) -> Self {
        match failure {
            selection::Failure::Error(error) => Self::Error(error),
            selection::Failure::Choice(message) => Self::Usage(message),
        }
    }
}
