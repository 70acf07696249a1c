//! Limits of the remote endpoints.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::nodes::{ConnectionIds, Nodes};
use super::{BodyBudget, Metrics, Origin, SendTranscript};

/// Limits of the remote endpoints, each with its default.
///
/// What exceeds a limit is refused or waits; nothing is dropped silently. Of `connections`, `bodies`,
/// `event_streams`, `long_reads` and the tickets, the master token may take all, any other token half, and all these
/// together three quarters.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointSettings {
    /// The maximum number of open connections at `/acp`, and of open requests and WebSockets at `/rpc`
    /// (1,000 each). Further ones are refused with 503.
    pub connections: usize,
    /// The maximum bytes of a request's body, and of a WebSocket message
    /// ([`MAX_MESSAGE_BYTES`]).
    pub message_bytes: usize,
    /// The maximum bytes of all requests' bodies together, and of messages that arrive at `/acp` over
    /// WebSocket (256 MiB). Further ones are refused with 503, or close their WebSocket.
    pub bodies: BodyBudget,
    /// How long a request's body may take to arrive (60 s). Then it is refused with 408.
    pub body_timeout: Duration,
    /// The maximum number of a connection's requests that are not answered (10,000). Further ones
    /// are refused with 503.
    pub requests: usize,
    /// The bytes that wait for a stream before its session is held back (64 KiB).
    pub stream_bytes: usize,
    /// The maximum bytes of requests and answers that wait for the streams of a connection
    /// ([`MAX_MESSAGE_BYTES`]). A connection with more is closed.
    pub waiting_bytes: usize,
    /// The maximum number of session streams of a connection, open or expected (1,024).
    pub streams: usize,
    /// The maximum number of open streams of events of the REST interface (1,000). Further ones are
    /// refused with 503.
    pub event_streams: usize,
    /// The maximum number of whole sessions that are read at a time, by `GET /sessions/{id}`, transcripts
    /// and the sharing of transcripts (64). Further reads are refused with 503.
    pub long_reads: usize,
    /// The folder for transcripts that `POST /sessions/{id}/share` writes (none: it writes none).
    pub share_dir: Option<PathBuf>,
    /// The servers to which `POST /sessions/{id}/share` may send transcripts (none).
    pub share_origins: Vec<Origin>,
    /// What sends them there (nothing: they are sent nowhere).
    pub share_by: Option<Arc<dyn SendTranscript>>,
    /// Whether clients of OpenOxide are served at `POST /openoxide/prompt` (no).
    pub openoxide: bool,
    /// How long a connection without streams and requests is kept (5 minutes).
    pub grace: Duration,
    /// Time between the signs of life on an idle stream or WebSocket (15 s).
    pub keep_alive: Duration,
    /// How long a write over WebSocket may make no progress, and the first message may take (60 s).
    pub write_timeout: Duration,
    /// Where the endpoints count what is open (nowhere that anybody reads).
    pub metrics: Metrics,
    /// Finds the node that has a session, where several nodes share a store (none: every session that
    /// can be opened is opened here).
    #[doc(hidden)]
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Names the node in the ids of connections ([`serve`](crate::serve()) sets it).
    pub(crate) connection_ids: Option<Arc<ConnectionIds>>,
    /// Cancelled by the program when all connections are to end (never).
    pub stop: CancellationToken,
}

impl EndpointSettings {
    /// Returns what passes requests on to other nodes; nothing is passed on twice.
    pub(crate) fn nodes_for(&self, caller: &Caller) -> Option<&Arc<dyn Nodes>> {
        self.nodes.as_ref().filter(|_| !caller.is_passed_on)
    }
}

impl Default for EndpointSettings {
    fn default() -> Self {
        Self {
            connections: 1_000,
            message_bytes: MAX_MESSAGE_BYTES,
            bodies: BodyBudget::default(),
            body_timeout: Duration::from_secs(60),
            requests: 10_000,
            stream_bytes: 64 << 10,
            waiting_bytes: MAX_MESSAGE_BYTES,
            streams: 1_024,
            event_streams: 1_000,
            long_reads: 64,
            share_dir: None,
            share_origins: Vec::new(),
            share_by: None,
            openoxide: false,
            grace: Duration::from_secs(300),
            keep_alive: Duration::from_secs(15),
            write_timeout: Duration::from_secs(60),
            metrics: Metrics::default(),
            nodes: None,
            connection_ids: None,
            stop: CancellationToken::new(),
        }
    }
}
