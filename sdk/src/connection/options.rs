//! What can be set about a connection, and how one is opened.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Driver;
use crate::error::{CloseReason, Error, Result};
use crate::runtime::{Peer, Service};
use crate::transcript::{Side, Transcript};
use crate::transport::{self, Framing};
use crate::version::{IntoAgent, IntoClient};

/// Told of input that was put up with. All methods do nothing by default.
///
/// They are called from the connection's loop, so they must not block.
pub trait Observer: Send + Sync + 'static {
    /// The peer wrote a line that is no message; `reason` says why not. Between messages with
    /// headers there are no lines, and `line` is empty.
    fn bad_line(&self, line: &[u8], reason: &str) {
        let _ = (line, reason);
    }

    /// A line above the limit was skipped; `bytes` is its length.
    fn line_too_long(&self, bytes: u64) {
        let _ = bytes;
    }

    /// A value that does not fit its type was left out of a message, as the schema allows.
    /// `path` is a JSON Pointer into the params or result.
    fn dropped(&self, method: &str, path: &str, reason: &str) {
        let _ = (method, path, reason);
    }

    /// The peer reported an error that belongs to no request.
    fn complaint(&self, error: &str) {
        let _ = error;
    }
}

struct NoObserver;
impl Observer for NoObserver {}

pub(crate) struct Options {
    pub(crate) framing: Framing,
    pub(crate) max_message_bytes: usize,
    pub(crate) high_water: usize,
    pub(crate) max_queued_bytes: usize,
    pub(crate) max_requests: usize,
    pub(crate) grace: Duration,
    pub(crate) answers_bad_lines: bool,
    pub(crate) coalesce: bool,
    pub(crate) observer: Arc<dyn Observer>,
}

/// Opens connections; the defaults suit both sides.
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
/// let (client, driver) = ConnectionBuilder::new()
///     .max_message_bytes(1 << 20)
///     .agent(Echo, reader, writer);
/// # drop(client);
/// driver.await
/// # }
/// ```
#[must_use]
pub struct ConnectionBuilder {
    pub(super) options: Options,
    explain_close: Option<ExplainClose>,
    transcript: Option<Transcript>,
}

/// Says why the peer closed the stream.
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
    /// The defaults, as each method states them.
    pub fn new() -> Self {
        Self {
            options: Options {
                framing: Framing::Auto,
                max_message_bytes: 32 << 20,
                high_water: 64 << 10,
                max_queued_bytes: 8 << 20,
                max_requests: 10_000,
                grace: Duration::from_secs(2),
                answers_bad_lines: true,
                coalesce: false,
                observer: Arc::new(NoObserver),
            },
            explain_close: None,
            transcript: None,
        }
    }

    /// How messages are told apart, in both directions (default: as the peer does).
    pub fn framing(mut self, framing: Framing) -> Self {
        self.options.framing = framing;
        self
    }

    /// The longest message accepted, in bytes; longer ones are skipped (default 32 MiB).
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.options.max_message_bytes = bytes;
        self
    }

    /// Senders wait while more than this many bytes are unsent (default 64 KiB). A single
    /// message may be larger.
    pub fn high_water_bytes(mut self, bytes: usize) -> Self {
        self.options.high_water = bytes.max(1);
        self
    }

    /// Reading pauses while notifications of this size, their handlers included, wait for
    /// their turns (default 8 MiB).
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.options.max_queued_bytes = bytes;
        self
    }

    /// Requests of the peer in progress at once; more are refused (default 10,000).
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.options.max_requests = requests;
        self
    }

    /// How long handlers may still run when the peer has closed the stream (default 2 s).
    /// They are told by [`Context::cancelled`](crate::runtime::Context::cancelled) and dropped after it.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Whether lines that are no message are answered with an error (default yes). Clients
    /// say no: what agents print by accident is not a question. Bad arrays, and bad entries of
    /// arrays, are answered all the same where the protocol has arrays: in version 2.
    pub fn answer_bad_lines(mut self, answer: bool) -> Self {
        self.options.answers_bad_lines = answer;
        self
    }

    /// Whether adjacent text chunks of one message may be joined while they wait to be
    /// written (default no). The text stays the same; a client that is behind receives
    /// fewer, longer chunks, of 16 KiB at most.
    pub fn coalesce_chunks(mut self, join: bool) -> Self {
        self.options.coalesce = join;
        self
    }

    /// Who is told of input that was put up with (default nobody; `tracing` has it at debug).
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.options.observer = Arc::new(observer);
        self
    }

    /// Records the messages of both sides (default: no transcript).
    pub fn transcript(mut self, transcript: Transcript) -> Self {
        self.transcript = Some(transcript);
        self
    }

    /// When the peer closes the stream, this is awaited and becomes the reason that pending
    /// calls fail with: the exit status of a process, say. It must end by itself.
    pub fn explain_close(
        mut self,
        why: impl Future<Output = CloseReason> + Send + 'static,
    ) -> Self {
        self.explain_close = Some(Box::pin(why));
        self
    }

    /// Serves `agent` on standard input and output until the client closes them, as
    /// [`acp_sdk::serve_stdio`](crate::serve_stdio) does with the defaults.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) when standard input or output cannot be used,
    /// [`Error::Closed`](crate::Error::Closed) when reading or writing fails later.
    pub async fn serve_stdio<V, A: IntoAgent<V>>(self, agent: A) -> Result<()> {
        let (reader, writer) = transport::stdio().map_err(stdio_failed)?;
        let (_client, driver) = self.agent(agent, reader, writer);
        driver.spawned().await
    }

    /// Serves `agent` on a pair of streams. The driver must be polled, usually by spawning it.
    pub fn agent<V, A: IntoAgent<V>>(
        self,
        agent: A,
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> (A::Client, Driver) {
        let (service, caller) = agent.into_service();
        let (peer, driver) = self
            .transcript_as(Side::Agent)
            .open(service, reader, writer);
        (caller(peer), driver)
    }

    /// Talks to an agent on a pair of streams. The driver must be polled, usually by spawning it.
    pub fn client<V, C: IntoClient<V>>(
        self,
        client: C,
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> (C::Agent, Driver) {
        let options = self.answer_bad_lines(false).transcript_as(Side::Client);
        let (service, caller) = client.into_service();
        let (peer, driver) = options.open(service, reader, writer);
        (caller(peer), driver)
    }

    /// Opens a connection for a service of your own, such as one generated from an overlay.
    pub fn open(
        self,
        service: impl Service,
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> (Peer, Driver) {
        Driver::open(
            Arc::new(service),
            self.options,
            self.explain_close,
            self.transcript,
            Box::pin(reader),
            Box::pin(writer),
        )
    }

    fn transcript_as(mut self, side: Side) -> Self {
        if let Some(transcript) = &mut self.transcript {
            transcript.side = Some(side);
        }
        self
    }
}

/// Standard input or output cannot be taken over.
pub(crate) fn stdio_failed(error: std::io::Error) -> Error {
    Error::io("use standard input and output as the transport", error)
}
