//! What can go wrong on the way to a remote agent.

use std::convert::Infallible;
use std::time::Duration;

/// Why a remote agent cannot be used, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is no URL of an agent.
    #[error("cannot use the URL `{url}`: {reason}")]
    Url {
        /// As it was given, without a password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no usable token where one was expected.
    #[error("cannot use {origin}: {reason}")]
    Token {
        /// Where the token should be.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header, a certificate authority or a fingerprint is not usable.
    #[error("cannot use {what}: {reason}")]
    Option {
        /// The option, without its value.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {url}: {reason}")]
    Connect {
        /// The server's URL.
        url: String,
        /// What the system, TLS or a proxy reported.
        reason: String,
    },
    /// The server refused a request.
    #[error("{url} refused {request} with status {status}{}", detail(.message, *.status))]
    Refused {
        /// The server's URL.
        url: String,
        /// What was refused, such as `POST initialize`.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The start of the response's body.
        message: String,
    },
    /// The server does not follow the transport's rules.
    #[error("{url} is no endpoint of this protocol: {reason}")]
    Protocol {
        /// The server's URL.
        url: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// The connection was lost.
    #[error("the connection to {url} was lost: {reason}")]
    Lost {
        /// The server's URL.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Reconnecting took too long.
    #[error("could not reconnect to {url} within {} s: {reason}", .limit.as_secs_f32())]
    GaveUp {
        /// The server's URL.
        url: String,
        /// For how long it was tried.
        limit: Duration,
        /// Why the last attempt failed.
        reason: String,
    },
}

impl RemoteError {
    /// Returns the HTTP status of a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns whether another attempt may succeed: not after 401, 403, 404 and 410, nor when an
    /// option is wrong.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Lost { .. } => true,
            Self::Refused { status, .. } => {
                matches!(status, 408 | 409 | 425 | 429) || (500..600).contains(status)
            }
            _ => false,
        }
    }
}

impl From<Infallible> for RemoteError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// What the server said, and what the user can do.
fn detail(message: &str, status: u16) -> String {
    let remedy = match status {
        401 => "; pass the server's token",
        403 => "; the server does not accept this host, origin or token",
        404 => "; check the path of the URL, which is /acp on most servers",
        301 | 302 | 307 | 308 => "; redirects are not followed, use the final URL",
        _ => "",
    };
    match message {
        "" => remedy.to_owned(),
        message => format!(" ({message}){remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_remedy() {
        let error = RemoteError::Refused {
            url: "https://host/acp".to_owned(),
            request: "POST initialize".to_owned(),
            status: 401,
            message: "unauthorized".to_owned(),
        };
        let expected = "https://host/acp refused POST initialize with status 401 (unauthorized); \
            pass the server's token";
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_temporary());
    }
}
