//! The errors of connections to remote agents.

use std::convert::Infallible;
use std::time::Duration;

/// The error of a connection to a remote agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is not valid for an agent.
    #[error("cannot use the URL `{url}`: {reason}")]
    Url {
        /// The URL without its password.
        url: String,
        /// The defect.
        reason: String,
    },
    /// A token cannot be read or is invalid.
    #[error("cannot use {origin}: {reason}")]
    Token {
        /// The source of the token.
        origin: String,
        /// The defect.
        reason: String,
    },
    /// A header, a certificate authority or a fingerprint is invalid.
    #[error("cannot use {what}: {reason}")]
    Option {
        /// The option, without its value.
        what: String,
        /// The defect.
        reason: String,
    },
    /// A secret would be sent to another machine without encryption.
    #[error(
        "{url} is not encrypted, so others could read {what} on the way. Use {scheme}://, or a tunnel to \
         this machine; --insecure (in Rust `RemoteAgent::insecure`) sends it all the same"
    )]
    Unencrypted {
        /// The server's URL.
        url: String,
        /// The secret, without its value.
        what: String,
        /// The scheme of an encrypted URL.
        scheme: &'static str,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {url}: {reason}")]
    Connect {
        /// The server's URL.
        url: String,
        /// The error of the system, of TLS or of a proxy.
        reason: String,
    },
    /// The server rejected a request.
    #[error("{url} refused {request} with status {status}{}", detail(.message, *.status))]
    Refused {
        /// The server's URL.
        url: String,
        /// The rejected request, such as `POST initialize`.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The start of the response's body.
        message: String,
    },
    /// The server violates the transport's specification.
    #[error("{url} is not an ACP endpoint: {reason}")]
    Protocol {
        /// The server's URL.
        url: String,
        /// The violation.
        reason: String,
    },
    /// The connection was lost.
    #[error("the connection to {url} was lost: {reason}")]
    Lost {
        /// The server's URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// Reconnecting exceeded its time limit.
    #[error("could not reconnect to {url} within {} s: {reason}", .limit.as_secs_f32())]
    ReconnectTimeout {
        /// The server's URL.
        url: String,
        /// The time limit.
        limit: Duration,
        /// The cause of the last attempt's failure.
        reason: String,
    },
}

impl RemoteError {
    /// Returns the HTTP status of a rejection.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns whether another attempt may succeed.
    ///
    /// `false` after the status 401, 403, 404 or 410, and for invalid options.
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

/// Returns the start of the response's body and a remedy for the status.
fn detail(message: &str, status: u16) -> String {
    let remedy = match status {
        401 => "; the token is missing or wrong: pass the server's token",
        403 => "; the server rejects this host, origin or token",
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
            the token is missing or wrong: pass the server's token";
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_temporary());
    }
}
