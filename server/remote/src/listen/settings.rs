//! Settings of a listener.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::tls::Tls;
use crate::Tokens;

/// Settings of [`listen`](super::listen), each with its default.
#[derive(Clone)]
#[non_exhaustive]
pub struct ListenSettings {
    /// Certificate and key; `None`: no TLS (`None`).
    pub tls: Option<Tls>,
    /// The maximum number of sockets, those of WebSockets among them (10,000). An address, or a
    /// network of 64 bits of IP version 6, has half of them. Further ones are answered 503 with
    /// `Retry-After`; when 256 of them wait for that, no more are accepted, and of the half of these
    /// that an address has, further ones are closed.
    pub connections: usize,
    /// Tokens whose master has a quarter of `connections` for itself (none): all others, also those
    /// from loopback, have three quarters. A socket without a place is served if its first request
    /// comes within 2 s and has `Authorization: Bearer` with this token. [`serve`](crate::serve())
    /// sets its own.
    pub reserve_for: Option<Tokens>,
    /// Time for the TLS handshake (10 s).
    pub handshake_timeout: Duration,
    /// Time until a request's headers are complete, from the first byte or from the end of the
    /// request before it (30 s).
    pub header_timeout: Duration,
    /// Time without a request until an HTTP/2 connection is closed (5 minutes).
    pub idle_timeout: Duration,
    /// How long a socket may take no byte of what waits for it before it is closed (60 s).
    pub write_timeout: Duration,
    /// The maximum number of headers of a request over HTTP/1.1 (100). Beyond it: 431.
    pub headers: usize,
    /// The maximum bytes of a request's headers (64 KiB; at least 8 KiB). Beyond it: 431.
    pub header_bytes: usize,
    /// The maximum number of open streams of an HTTP/2 connection (2,048).
    pub http2_streams: u32,
    /// The maximum number of HTTP/2 streams that the client has reset before they were handled (20).
    /// A connection with more is closed.
    pub http2_resets: usize,
    /// Time between two pings of an HTTP/2 connection, and until the answer (20 s).
    pub http2_keep_alive: Duration,
    /// Time between two looks at the files of the certificate (5 s).
    pub reload_interval: Duration,
    /// Time for open requests and WebSockets to end at shutdown; then their sockets are dropped
    /// (10 s).
    pub shutdown_timeout: Duration,
    /// Receives what an operator should know, such as a certificate that cannot be loaded (default: an
    /// event of `tracing`; in a program without a subscriber, a line on standard error).
    pub on_warning: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for ListenSettings {
    fn default() -> Self {
        Self {
            tls: None,
            connections: 10_000,
            reserve_for: None,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(60),
            headers: 100,
            header_bytes: 64 << 10,
            http2_streams: 2_048,
            http2_resets: 20,
            http2_keep_alive: Duration::from_secs(20),
            reload_interval: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(10),
            on_warning: Arc::new(|warning| {
                if tracing::dispatcher::has_been_set() {
                    tracing::warn!("{warning}");
                } else {
                    // Standard error may be closed; there is nobody else to notify.
                    let _ = writeln!(std::io::stderr(), "acp-server: {warning}");
                }
            }),
        }
    }
}

impl fmt::Debug for ListenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenSettings")
            .field("tls", &self.tls)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
