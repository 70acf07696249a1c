//! The address and the connection options of a remote agent.

use std::path::Path;
use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::tls::{self, Trust};
use super::{RemoteError, Token};
use crate::reconnect::Reconnect;

/// Describes an agent behind a URL, the counterpart of [`AgentCommand`](crate::AgentCommand).
///
/// `https://` and `http://` select the protocol's streamable HTTP transport, `wss://` and `ws://`
/// its WebSocket transport. The environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and
/// `NO_PROXY` apply, except to loopback addresses.
///
/// ```no_run
/// use acp_client::remote::{RemoteAgent, Token};
///
/// # fn example() -> Result<(), acp_client::remote::RemoteError> {
/// let agent = RemoteAgent::new("https://agents.example.org/acp")?
///     .token(Token::from_file("/run/secrets/acp")?)
///     .header("X-Tenant", "blue")?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RemoteAgent {
    pub(super) url: Url,
    pub(super) is_websocket: bool,
    pub(super) token: Option<Token>,
    pub(super) headers: HeaderMap,
    pub(super) trust: Trust,
    pub(super) limits: Limits,
    pub(super) reconnect: Option<Reconnect>,
    insecure: bool,
}

/// Timeouts and the maximum message size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    pub(super) response: Duration,
    pub(super) idle: Duration,
    pub(super) message_bytes: usize,
}

/// Headers that the transport sets.
const RESERVED: [&str; 14] = [
    "accept",
    "acp-connection-id",
    "acp-protocol-version",
    "acp-session-id",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "sec-websocket-key",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
];

impl RemoteAgent {
    /// Creates a description from the URL of an agent.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Url`] if the URL has another scheme, no host, or a user or password, because
    /// those would appear in logs.
    pub fn new(url: impl AsRef<str>) -> Result<Self, RemoteError> {
        let text = url.as_ref();
        let failed = |shown: &str, reason: &str| RemoteError::Url {
            url: shown.to_owned(),
            reason: reason.to_owned(),
        };
        let mut url = Url::parse(text).map_err(|error| {
            // An invalid URL may contain a password.
            let shown = text.split('@').next_back().unwrap_or_default();
            failed(shown, &error.to_string())
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            let shown = text.split('@').next_back().unwrap_or_default();
            let reason = "it has a user or a password; pass a token or a header instead";
            return Err(failed(shown, reason));
        }
        let (scheme, is_websocket) = match url.scheme() {
            "http" => ("http", false),
            "https" => ("https", false),
            "ws" => ("http", true),
            "wss" => ("https", true),
            _ => return Err(failed(text, "expected http://, https://, ws:// or wss://")),
        };
        url.set_fragment(None);
        if !url.has_host() || url.set_scheme(scheme).is_err() {
            return Err(failed(text, "it has no host"));
        }
        Ok(Self {
            url,
            is_websocket,
            token: None,
            headers: HeaderMap::new(),
            trust: Trust::System,
            limits: Limits {
                connect: Duration::from_secs(10),
                response: Duration::from_secs(60),
                idle: Duration::from_secs(60),
                message_bytes: MAX_MESSAGE_BYTES,
            },
            reconnect: Some(Reconnect::default()),
            insecure: false,
        })
    }

    /// Sends a bearer token with each request, to another machine only over `https://` or `wss://`
    /// ([`insecure`](Self::insecure)).
    #[must_use]
    pub fn token(mut self, token: impl Into<Option<Token>>) -> Self {
        self.token = token.into();
        self
    }

    /// Sends a header with each request. The value is treated as a secret, as a token is.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Option`] if the name or value is invalid, or the transport sets the header
    /// itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        let failed = |reason: &str| RemoteError::Option {
            what: format!("the header `{name}`"),
            reason: reason.to_owned(),
        };
        let key = HeaderName::try_from(name).map_err(|_| failed("its name is not valid"))?;
        if key == "authorization" {
            return Err(failed("pass a token instead"));
        }
        if RESERVED.contains(&key.as_str()) {
            return Err(failed("the transport sets it itself"));
        }
        let mut value =
            HeaderValue::try_from(value).map_err(|_| failed("its value is not valid"))?;
        value.set_sensitive(true);
        self.headers.append(key, value);
        Ok(self)
    }

    /// Trusts the certificate authorities of a PEM file instead of the system's.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Option`] if the file cannot be read or contains no certificate.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Result<Self, RemoteError> {
        self.trust = Trust::Authorities(tls::authorities(path.as_ref())?);
        Ok(self)
    }

    /// Trusts only the certificate with this SHA-256 fingerprint, whatever its issuer and names.
    ///
    /// The fingerprint has 64 hexadecimal digits, with or without colons.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Option`] if the text is not a SHA-256 fingerprint.
    pub fn fingerprint(mut self, sha256: &str) -> Result<Self, RemoteError> {
        self.trust = Trust::Fingerprint(tls::fingerprint(sha256)?);
        Ok(self)
    }

    /// Allows the token and the added headers to be sent to another machine without encryption.
    ///
    /// Everybody on the way can read and use them. By default, connecting then fails with
    /// [`RemoteError::Unencrypted`].
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Fails when secrets would be sent to another machine without encryption.
    pub(super) fn check_encryption(&self) -> Result<(), RemoteError> {
        let what = match (&self.token, self.headers.keys().next()) {
            (Some(_), _) => "the token".to_owned(),
            (None, Some(name)) => format!("the header `{name}`"),
            (None, None) => return Ok(()),
        };
        if self.insecure || self.url.scheme() == "https" || is_loopback(&self.url) {
            return Ok(());
        }
        Err(RemoteError::Unencrypted {
            url: self.url(),
            what,
            scheme: if self.is_websocket { "wss" } else { "https" },
        })
    }

    /// Sets the timeout for connecting, including TLS (default 10 s).
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.limits.connect = limit;
        self
    }

    /// Sets the timeout for the response to a POST (default 60 s).
    #[must_use]
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.limits.response = limit;
        self
    }

    /// Sets the idle time after which a connection counts as lost (default 60 s).
    ///
    /// Applies to WebSocket when pings are not answered, and to event streams whose server has sent a
    /// keep-alive before.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.limits.idle = limit;
        self
    }

    /// Sets the maximum size of a received message in bytes (default [`MAX_MESSAGE_BYTES`]).
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.limits.message_bytes = bytes;
        self
    }

    /// Sets the reconnect settings; `None` disables reconnecting.
    #[must_use]
    pub fn reconnect(mut self, reconnect: impl Into<Option<Reconnect>>) -> Self {
        self.reconnect = reconnect.into();
        self
    }

    /// Returns the URL that was passed to [`new`](Self::new).
    #[must_use]
    pub fn url(&self) -> String {
        let text = self.url.as_str();
        match self.is_websocket {
            // Converts `http` to `ws` and `https` to `wss`.
            true => text.replacen("http", "ws", 1),
            false => text.to_owned(),
        }
    }
}

/// Returns whether a URL names this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    is_loopback || host.eq_ignore_ascii_case("localhost")
}

impl TryFrom<&str> for RemoteAgent {
    type Error = RemoteError;

    fn try_from(url: &str) -> Result<Self, Self::Error> {
        Self::new(url)
    }
}

impl TryFrom<String> for RemoteAgent {
    type Error = RemoteError;

    fn try_from(url: String) -> Result<Self, Self::Error> {
        Self::new(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_which_transport_it_is() {
        for (url, is_websocket) in [
            ("http://localhost:5173/acp", false),
            ("https://host/acp", false),
            ("ws://[::1]:1/acp", true),
            ("wss://host/x?y=z", true),
        ] {
            let agent = RemoteAgent::new(url).unwrap();
            assert_eq!(
                (agent.is_websocket, agent.url()),
                (is_websocket, url.to_owned())
            );
        }
    }

    #[test]
    fn an_unusable_url_is_refused_without_its_password() {
        for url in [
            "localhost:5173",
            "ftp://host/acp",
            "/acp",
            "http://",
            "https://u:s3cret@host/",
        ] {
            let error = RemoteAgent::new(url).unwrap_err();
            assert!(matches!(error, RemoteError::Url { .. }), "{url}: {error}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn secrets_stay_on_this_machine_or_are_encrypted() {
        for (url, is_allowed) in [
            ("http://localhost:1/acp", true),
            ("ws://127.0.0.2/acp", true),
            ("http://[::1]/acp", true),
            ("https://host/acp", true),
            ("wss://host/acp", true),
            ("http://host/acp", false),
            ("ws://10.0.0.1/acp", false),
            ("http://localhost.example/acp", false),
        ] {
            let plain = RemoteAgent::new(url).unwrap();
            assert!(plain.check_encryption().is_ok(), "{url}");
            let secret = plain.token(Token::new("s3cret").unwrap());
            assert_eq!(secret.check_encryption().is_ok(), is_allowed, "{url}");
            assert!(secret.insecure().check_encryption().is_ok(), "{url}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let agent = RemoteAgent::new("https://host/acp").unwrap();
        let agent = agent.token(Token::new("s3cret").unwrap());
        let agent = agent.header("X-Key", "s3cret too").unwrap();
        assert!(!format!("{agent:?}").contains("s3cret"));
        for name in ["Acp-Session-Id", "authorization", "Host", "not a name"] {
            let error = agent.clone().header(name, "s3cret").unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
