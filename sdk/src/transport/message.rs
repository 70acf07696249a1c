//! Transports of whole messages, and what a connection is opened on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

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
