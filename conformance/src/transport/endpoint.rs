//! The address of a server, the headers of every request, and sockets to it.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls::{self, Trust};

/// How long connecting may take, TLS included.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest token, in bytes.
const TOKEN_BYTES: usize = 8 << 10;

/// The key of every WebSocket handshake, and the answer to it: both are those of RFC 6455, section 1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

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

/// A byte stream to a server.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Socket for T {}

/// An endpoint that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The URL is not valid for an agent.
    #[error("cannot use the URL `{url}`: {reason}")]
    Url {
        /// The URL without its password.
        url: String,
        /// The defect.
        reason: String,
    },
    /// A token, a header, a certificate authority or a fingerprint is invalid.
    #[error("cannot use {what}: {reason}")]
    Option {
        /// The option, without its value.
        what: String,
        /// The defect.
        reason: String,
    },
}

/// Describes an agent behind a URL.
///
/// `https://` and `http://` select the protocol's streamable HTTP transport, `wss://` and `ws://`
/// its WebSocket transport. Each request has a socket of its own, over HTTP/1.1 and without the
/// proxies of the environment.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: String,
    uri: Uri,
    headers: HeaderMap,
    trust: Trust,
    insecure: bool,
}

impl Endpoint {
    /// Creates a description from the URL of an agent.
    ///
    /// # Errors
    /// [`EndpointError::Url`] if the URL has another scheme, no host, or a user or password, because
    /// those would appear in reports.
    pub fn new(url: &str) -> Result<Self, EndpointError> {
        let failed = |reason: &str| EndpointError::Url {
            url: url.split('@').next_back().unwrap_or_default().to_owned(),
            reason: reason.to_owned(),
        };
        let uri: Uri = url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| failed(&error.to_string()))?;
        if !matches!(uri.scheme_str(), Some("http" | "https" | "ws" | "wss")) {
            return Err(failed("expected http://, https://, ws:// or wss://"));
        }
        if uri.authority().is_none_or(|it| it.host().is_empty()) {
            return Err(failed("it has no host"));
        }
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            let reason = "it has a user or a password; pass a token or a header instead";
            return Err(failed(reason));
        }
        Ok(Self {
            url: url.to_owned(),
            uri,
            headers: HeaderMap::new(),
            trust: Trust::System,
            insecure: false,
        })
    }

    /// Sends a bearer token with each request, to another machine only over `https://` or `wss://`
    /// ([`insecure`](Self::insecure)). Surrounding white space is removed.
    ///
    /// # Errors
    /// [`EndpointError::Option`] if it is empty, longer than 8 KiB, or has characters other than
    /// visible ASCII.
    pub fn token(mut self, token: &str) -> Result<Self, EndpointError> {
        let failed = |reason: &str| EndpointError::Option {
            what: "the token".to_owned(),
            reason: reason.to_owned(),
        };
        let token = token.trim();
        if token.is_empty() {
            return Err(failed("it is empty"));
        }
        if token.len() > TOKEN_BYTES {
            return Err(failed("it is longer than 8 KiB"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(failed("it has characters other than visible ASCII"));
        }
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| failed("it is not a valid header value"))?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(self)
    }

    /// Sends a header with each request. The value is treated as a secret, as a token is.
    ///
    /// # Errors
    /// [`EndpointError::Option`] if the name or value is invalid, or the transport sets the header
    /// itself.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, EndpointError> {
        let failed = |reason: &str| EndpointError::Option {
            what: format!("the header `{name}`"),
            reason: reason.to_owned(),
        };
        let key = HeaderName::try_from(name).map_err(|_| failed("its name is not valid"))?;
        if key == AUTHORIZATION {
            return Err(failed("pass a token instead"));
        }
        if RESERVED.contains(&key.as_str()) {
            return Err(failed("the transport sets it itself"));
        }
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| failed("its value is not valid"))?;
        value.set_sensitive(true);
        self.headers.append(key, value);
        Ok(self)
    }

    /// Trusts the certificate authorities of a PEM file instead of the system's.
    ///
    /// # Errors
    /// [`EndpointError::Option`] if the file cannot be read or contains no certificate.
    pub fn ca_file(mut self, path: impl AsRef<Path>) -> Result<Self, EndpointError> {
        self.trust = Trust::Authorities(tls::authorities(path.as_ref())?);
        Ok(self)
    }

    /// Trusts only the certificate with this SHA-256 fingerprint, whatever its issuer and names: 64
    /// hexadecimal digits, with or without colons.
    ///
    /// # Errors
    /// [`EndpointError::Option`] if the text is not a SHA-256 fingerprint.
    pub fn fingerprint(mut self, sha256: &str) -> Result<Self, EndpointError> {
        self.trust = Trust::Fingerprint(tls::fingerprint(sha256)?);
        Ok(self)
    }

    /// Allows the token and the added headers to be sent to another machine without encryption.
    ///
    /// Everybody on the way can read and use them. By default, connecting then fails.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether the URL selects the WebSocket transport.
    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.uri.scheme_str(), Some("ws" | "wss"))
    }

    fn is_encrypted(&self) -> bool {
        matches!(self.uri.scheme_str(), Some("https" | "wss"))
    }

    /// Returns the URL as that of an HTTP request.
    pub(crate) fn http_url(&self) -> String {
        let scheme = if self.is_encrypted() { "https" } else { "http" };
        let authority = self.uri.authority().map_or("", |it| it.as_str());
        format!("{scheme}://{authority}{}", self.path())
    }

    /// Returns the path and query of the URL.
    pub(crate) fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    /// Returns the headers of every request.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        let host = self.uri.authority().map_or("", |it| it.as_str());
        if let Ok(host) = HeaderValue::from_str(host) {
            headers.insert(HOST, host);
        }
        let name = concat!("acp-conformance/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(name));
        headers
    }

    /// Returns the headers of a request for a WebSocket.
    pub(crate) fn upgrade_headers(&self) -> HeaderMap {
        let mut headers = self.headers();
        for (name, value) in [
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", KEY),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }

    /// Opens a byte stream to the server. Over TLS, `protocols` are offered by ALPN.
    ///
    /// # Errors
    /// When connecting fails or takes more than 10 s, the certificate is not trusted, or secrets would
    /// be sent to another machine without encryption.
    pub(crate) async fn connect(&self, protocols: &[&str]) -> io::Result<Box<dyn Socket>> {
        self.check_encryption()?;
        let connecting = timeout(CONNECT, self.connect_now(protocols)).await;
        let none = || {
            let limit = CONNECT.as_secs();
            io::Error::other(format!("no connection within {limit} s"))
        };
        connecting.map_err(|_| none())?
    }

    async fn connect_now(&self, protocols: &[&str]) -> io::Result<Box<dyn Socket>> {
        let port = if self.is_encrypted() { 443 } else { 80 };
        let port = self.uri.port_u16().unwrap_or(port);
        let socket = TcpStream::connect((self.host(), port)).await?;
        socket.set_nodelay(true)?;
        match self.is_encrypted() {
            true => Ok(Box::new(
                tls::connect(&self.trust, protocols, self.host(), socket).await?,
            )),
            false => Ok(Box::new(socket)),
        }
    }

    /// Returns the host, without the brackets that a URL has around an IPv6 address.
    fn host(&self) -> &str {
        let host = self.uri.host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Sends a request on a socket of its own, and waits for the head of the response.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not respond within `limit`.
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
    ) -> io::Result<Response<Incoming>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        *request.uri_mut() = self.path().parse().map_err(io::Error::other)?;
        let socket = TokioIo::new(self.connect(&["http/1.1"]).await?);
        let sending = async {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await?;
            // Ends with the response, or with the WebSocket.
            tokio::spawn(connection.with_upgrades());
            sender.send_request(request).await
        };
        match timeout(limit, sending).await {
            Ok(response) => response.map_err(io::Error::other),
            Err(_) => Err(io::Error::other(format!(
                "no response within {} s",
                limit.as_secs_f32()
            ))),
        }
    }

    /// Fails when secrets would be sent to another machine without encryption.
    fn check_encryption(&self) -> io::Result<()> {
        let host = self.host();
        let is_loopback = host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if self.headers.is_empty() || self.insecure || self.is_encrypted() || is_loopback {
            return Ok(());
        }
        let what = match self.headers.keys().find(|name| **name != AUTHORIZATION) {
            Some(name) if !self.headers.contains_key(AUTHORIZATION) => {
                format!("the header `{name}`")
            }
            _ => "the token".to_owned(),
        };
        let scheme = if self.is_websocket() { "wss" } else { "https" };
        Err(io::Error::other(format!(
            "the connection is not encrypted, so others could read {what} on the way. Use {scheme}://, or a \
             tunnel to this machine; --insecure (in Rust `Endpoint::insecure`) sends it all the same"
        )))
    }
}

/// Returns whether the headers of a response accept the handshake of
/// [`upgrade_headers`](Endpoint::upgrade_headers).
pub(crate) fn accepts_websocket(headers: &HeaderMap) -> bool {
    let accept = headers.get("sec-websocket-accept");
    accept.is_some_and(|accept| accept.as_bytes() == ACCEPT.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_url_is_refused_without_its_password() {
        for url in [
            "localhost:5173",
            "ftp://host/acp",
            "/acp",
            "http://",
            "https://u:s3cret@host/",
        ] {
            let error = Endpoint::new(url).unwrap_err();
            assert!(matches!(error, EndpointError::Url { .. }), "{url}: {error}");
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
            let plain = Endpoint::new(url).unwrap();
            assert!(plain.check_encryption().is_ok(), "{url}");
            for secret in [
                plain.clone().token("s3cret").unwrap(),
                plain.header("X-Key", "s3cret").unwrap(),
            ] {
                assert_eq!(secret.check_encryption().is_ok(), is_allowed, "{url}");
                assert!(secret.insecure().check_encryption().is_ok(), "{url}");
            }
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let endpoint = Endpoint::new("https://host/acp").unwrap();
        let endpoint = endpoint.token(" s3cret\n").unwrap();
        assert_eq!(endpoint.headers()[AUTHORIZATION], "Bearer s3cret");
        let endpoint = endpoint.header("X-Key", "s3cret too").unwrap();
        assert!(!format!("{endpoint:?}").contains("s3cret"));
        for name in ["Acp-Session-Id", "authorization", "Host", "not a name"] {
            let error = endpoint.clone().header(name, "s3cret").unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        for token in ["", " ", "s3cret\ns3cret", "s3crét"] {
            let error = endpoint.clone().token(token).unwrap_err();
            assert!(!error.to_string().contains("s3cr"), "{error}");
        }
    }
}
