//! The options of a connection, and how one is opened.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::Connection;
use super::observer::{Observer, ObserverSlot};
use crate::error::CloseReason;
use crate::service::{Layer, Service};
use crate::transcript::{Rules, Side, Transcript};
use crate::transport::{Framing, Transport};
use crate::version::{IntoAgent, IntoClient};

pub(crate) struct Options {
    pub(crate) framing: Framing,
    pub(crate) ends_at_invalid_header: bool,
    pub(crate) max_message_bytes: usize,
    pub(crate) high_water: usize,
    pub(crate) max_queued_bytes: usize,
    pub(crate) max_requests: usize,
    pub(crate) max_request_bytes: usize,
    pub(crate) hold_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) close_timeout: Duration,
    /// The default depends on the side.
    pub(crate) answers_invalid: Option<bool>,
    pub(crate) exposes_sources: bool,
    pub(crate) observer: ObserverSlot,
}

/// Options of a connection, and the methods that open one. The defaults suit both sides.
///
/// ```
/// # use acp_sdk::{ConnectionBuilder, v1::*, HandlerResult, Result};
/// # struct Echo;
/// # impl Agent for Echo {
/// #     async fn new_session(&self, _: &AgentContext, _: NewSessionRequest) -> HandlerResult<NewSessionResponse> { Ok(NewSessionResponse::new("s")) }
/// #     async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> { Ok(PromptResponse::new(StopReason::EndTurn)) }
/// #     async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> { Ok(()) }
/// # }
/// # async fn example(reader: tokio::io::Empty, writer: tokio::io::Sink) -> Result<()> {
/// let connection = ConnectionBuilder::new()
///     .max_message_bytes(1 << 20)
///     .agent(Echo, (reader, writer));
/// connection.start().closed().await
/// # }
/// ```
#[must_use]
pub struct ConnectionBuilder {
    pub(super) options: Options,
    explain_close: Option<ExplainClose>,
    transcript: Option<Transcript>,
    layers: Vec<Box<dyn Layer>>,
    #[cfg(feature = "stdio")]
    pub(super) handles_sigterm: bool,
}

/// Yields why the peer closed its side.
pub(crate) type ExplainClose = Pin<Box<dyn Future<Output = CloseReason> + Send>>;

impl std::fmt::Debug for ConnectionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionBuilder").finish_non_exhaustive()
    }
}

impl Default for ConnectionBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl ConnectionBuilder {
    /// Creates a builder with the defaults that each method states.
    pub fn new() -> Self {
        Self {
            options: Options {
                framing: Framing::Auto,
                ends_at_invalid_header: false,
                max_message_bytes: crate::limits::MAX_MESSAGE_BYTES,
                high_water: 64 << 10,
                max_queued_bytes: 8 << 20,
                max_requests: 10_000,
                max_request_bytes: 64 << 20,
                hold_timeout: Duration::from_secs(30),
                shutdown_timeout: Duration::from_secs(2),
                drain_timeout: Duration::from_secs(30),
                close_timeout: Duration::from_secs(5),
                answers_invalid: None,
                exposes_sources: false,
                observer: ObserverSlot::default(),
            },
            explain_close: None,
            transcript: None,
            layers: Vec::new(),
            #[cfg(feature = "stdio")]
            handles_sigterm: true,
        }
    }

    /// Sets the message framing of byte streams (default: detected from the first message).
    pub fn framing(mut self, framing: Framing) -> Self {
        self.options.framing = framing;
        self
    }

    /// Ends the input at the first invalid header of [`Framing::ContentLength`], such as one with a bad length.
    /// It is answered all the same. Default: the input goes on at the next header.
    pub fn end_at_invalid_header(mut self) -> Self {
        self.options.ends_at_invalid_header = true;
        self
    }

    /// Sets the size of the largest accepted message in bytes (default
    /// [`MAX_MESSAGE_BYTES`](crate::limits::MAX_MESSAGE_BYTES)). Larger ones are skipped.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.options.max_message_bytes = bytes;
        self
    }

    /// Sets how many unsent bytes make senders wait (default 64 KiB). A single message may be
    /// larger.
    pub fn high_water_bytes(mut self, bytes: usize) -> Self {
        self.options.high_water = bytes.max(1);
        self
    }

    /// Sets the budget for queued notifications with their handlers, and held responses, in bytes
    /// (default 8 MiB). Reading pauses while they exceed it.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.options.max_queued_bytes = bytes;
        self
    }

    /// Sets how many incoming requests may be in progress (default 10,000). Further ones are
    /// refused with `-32603`.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.options.max_requests = requests;
        self
    }

    /// Sets the budget for the bytes of requests in progress (default 64 MiB). A request beyond
    /// it is refused with `-32603`, unless it is the only one.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.options.max_request_bytes = bytes;
        self
    }

    /// Sets how long a response waits for the handlers of earlier notifications (default 30 s).
    /// Then it is delivered all the same, and reported to the [`Observer`].
    ///
    /// The limit ends a deadlock that the connection cannot recognise: a notification handler
    /// that waits for a call made through a handle that is not its context's.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.options.hold_timeout = limit;
        self
    }

    /// Sets how long handlers may still run when the connection ends, after the last of them
    /// that completed (default 2 s). They learn of the end by
    /// [`Context::cancelled`](crate::Context::cancelled); then they are dropped, which answers
    /// their requests with `-32603`. Time during which unsent output waits for the peer does not
    /// count.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.options.shutdown_timeout = limit;
        self
    }

    /// Sets how long the peer may accept no output at the end of the connection (default 30 s).
    /// Then the rest is discarded and the connection fails with
    /// [`CloseReason::WriteTimedOut`].
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.options.drain_timeout = limit;
        self
    }

    /// Sets how long the end of the connection waits for the future of
    /// [`explain_close`](Self::explain_close) (default 5 s).
    pub fn close_timeout(mut self, limit: Duration) -> Self {
        self.options.close_timeout = limit;
        self
    }

    /// Sets whether invalid input without an id is answered with an error (default: yes, but no for
    /// clients, because agents may print stray text on stdout). Arrays, which no version has, and
    /// requests with an id are always answered.
    pub fn answer_invalid(mut self, answer: bool) -> Self {
        self.options.answers_invalid = Some(answer);
        self
    }

    /// Sends the peer the texts of the sources of an error that a handler returned with `?`, too
    /// (default: the text of the error itself; the sources are logged). They may name files and
    /// addresses of this machine.
    pub fn expose_sources(mut self) -> Self {
        self.options.exposes_sources = true;
        self
    }

    /// Wraps the service of the connection. The layer that is added first is the outermost.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Sets the callbacks for invalid input that was tolerated (default: none; `tracing` reports it
    /// at level debug).
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.options.observer = ObserverSlot::new(observer);
        self
    }

    /// Records the messages of both sides (default: no transcript).
    pub fn transcript(mut self, transcript: Transcript) -> Self {
        self.transcript = Some(transcript);
        self
    }

    /// Sets a future that yields the reason when the peer closes its side or stops reading, such
    /// as the exit of a process. The connection waits for it up to
    /// [`close_timeout`](Self::close_timeout); pending calls fail with the reason.
    pub fn explain_close(
        mut self,
        reason: impl Future<Output = CloseReason> + Send + 'static,
    ) -> Self {
        self.explain_close = Some(Box::pin(reason));
        self
    }

    /// Opens a connection that serves `agent` on a transport, such as a pair `(reader, writer)` of
    /// streams.
    pub fn agent<V, A: IntoAgent<V>>(
        self,
        agent: A,
        transport: impl Into<Transport>,
    ) -> Connection<A::Client> {
        let (service, caller) = agent.into_service();
        let connection = self.transcript_as(Side::Agent).open(service, transport);
        connection.with_handle(caller)
    }

    /// Opens a connection of `client` to the agent behind a transport, such as a pair
    /// `(reader, writer)` of streams.
    pub fn client<V, C: IntoClient<V>>(
        self,
        client: C,
        transport: impl Into<Transport>,
    ) -> Connection<C::Agent> {
        let mut builder = self.transcript_as(Side::Client);
        builder.options.answers_invalid.get_or_insert(false);
        let (service, caller) = client.into_service();
        builder.open(service, transport).with_handle(caller)
    }

    /// Opens a connection for any service, such as one generated from another document.
    pub fn open(self, service: impl Service, transport: impl Into<Transport>) -> Connection {
        let protocol: Arc<dyn Service> = Arc::new(service);
        let mut masking_rules = protocol.masking_rules();
        let mut service = protocol.clone();
        for layer in self.layers.iter().rev() {
            service = layer.layer(service);
            masking_rules.extend(service.masking_rules());
        }
        let rules = Rules::new(masking_rules);
        let recorder = self
            .transcript
            .and_then(|transcript| transcript.start(rules));
        Connection::open(
            protocol,
            service,
            self.options,
            self.explain_close,
            recorder,
            transport.into(),
        )
    }

    fn transcript_as(mut self, side: Side) -> Self {
        if let Some(transcript) = &mut self.transcript {
            transcript.side = Some(side);
        }
        self
    }
}
