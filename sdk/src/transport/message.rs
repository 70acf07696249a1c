//! Transports of whole messages, and what a connection is opened on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) type Reader = Pin<Box<dyn AsyncRead + Send>>;
pub(crate) type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// Moves whole messages in both directions: WebSocket frames, HTTP bodies, a queue in memory.
///
/// A message is one JSON text in UTF-8, without line feeds in what is sent. Messages arrive in
/// the order in which the peer sent them. The methods have the meaning of those of
/// `futures::Stream` and `futures::Sink`; none may block.
///
/// Backpressure: [`poll_ready`](Self::poll_ready) is pending while the transport holds as many
/// unsent bytes as it is willing to, and [`poll_receive`](Self::poll_receive) is not called
/// while the connection has no room, so a transport must not receive without bound either.
///
/// [`channel`](super::channel) is an implementation in memory.
pub trait MessageTransport: Send {
    /// Receives the next message; `None` when the peer has closed its side.
    ///
    /// # Errors
    ///
    /// Ends the connection with [`CloseReason::ReadFailed`](crate::CloseReason::ReadFailed).
    fn poll_receive(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>>;

    /// Waits until a message can be sent.
    ///
    /// # Errors
    ///
    /// This and the other methods that send end the connection with
    /// [`CloseReason::WriteFailed`](crate::CloseReason::WriteFailed).
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Accepts a message. Called once after each `poll_ready` that was ready.
    ///
    /// # Errors
    ///
    /// As [`poll_ready`](Self::poll_ready).
    fn start_send(self: Pin<&mut Self>, message: Bytes) -> io::Result<()>;

    /// Waits until every accepted message has left this process.
    ///
    /// # Errors
    ///
    /// As [`poll_ready`](Self::poll_ready).
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Closes the sending side. The peer may still send.
    ///
    /// # Errors
    ///
    /// As [`poll_ready`](Self::poll_ready).
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Receives one message or more, and appends each to `lines` with a line feed; `false` when the
    /// peer has closed its side. Line feeds and carriage returns within a message become spaces.
    ///
    /// Default: [`poll_receive`](Self::poll_receive). A transport that has read several messages at
    /// once may append them all, up to a number of bytes of its choice.
    ///
    /// # Errors
    ///
    /// As [`poll_receive`](Self::poll_receive); nothing is appended then.
    fn poll_receive_lines(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        lines: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        let message = ready!(self.poll_receive(cx))?;
        if let Some(message) = &message {
            push_line(lines, message);
        }
        Poll::Ready(Ok(message.is_some()))
    }

    /// Takes messages from the front of `lines`, each with a line feed, and sends them; ready when
    /// none is left. It waits as [`poll_ready`](Self::poll_ready), which is not to be called before.
    ///
    /// Default: [`start_send`](Self::start_send) for each message.
    ///
    /// # Errors
    ///
    /// As [`poll_ready`](Self::poll_ready).
    fn poll_send_lines(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        lines: &mut Bytes,
    ) -> Poll<io::Result<()>> {
        while !lines.is_empty() {
            ready!(self.as_mut().poll_ready(cx))?;
            let end = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
            let message = lines.split_to(end);
            // The line feed.
            drop(lines.split_to(lines.len().min(1)));
            self.as_mut().start_send(message)?;
        }
        Poll::Ready(Ok(()))
    }
}

/// Appends a message and a line feed.
pub fn push_line(lines: &mut Vec<u8>, message: &[u8]) {
    let has_breaks = memchr::memchr2(b'\n', b'\r', message).is_some();
    let start = lines.len();
    lines.reserve(message.len() + 1);
    lines.extend_from_slice(message);
    if has_breaks {
        // Between the values of a message, where any white space will do.
        for byte in &mut lines[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    lines.push(b'\n');
}

/// What a connection is opened on: a pair of byte streams, or a [`MessageTransport`].
///
/// Functions that open a connection take `impl Into<Transport>`, so a pair
/// `(reader, writer)` of tokio's traits can be passed as it is.
pub struct Transport(pub(crate) TransportKind);

pub(crate) enum TransportKind {
    Stream { reader: Reader, writer: Writer },
    Messages(Pin<Box<dyn MessageTransport>>),
}

impl Transport {
    /// Creates a transport from byte streams. How messages are separated in them is set by
    /// [`ConnectionBuilder::framing`](crate::ConnectionBuilder::framing).
    pub fn stream(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        let (reader, writer) = (Box::pin(reader), Box::pin(writer));
        Self(TransportKind::Stream { reader, writer })
    }

    /// Creates a transport from one of whole messages.
    pub fn messages(transport: impl MessageTransport + 'static) -> Self {
        Self(TransportKind::Messages(Box::pin(transport)))
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let form = match &self.0 {
            TransportKind::Stream { .. } => "stream",
            TransportKind::Messages(_) => "messages",
        };
        f.debug_tuple("Transport").field(&form).finish()
    }
}

impl<R, W> From<(R, W)> for Transport
where
    R: AsyncRead + Send + 'static,
    W: AsyncWrite + Send + 'static,
{
    fn from((reader, writer): (R, W)) -> Self {
        Self::stream(reader, writer)
    }
}
