//! The byte stream of a WebSocket, whose messages count in the budget of bodies until they are whole.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::access::{Holder, Share};
use crate::bodies::BodyBudget;

/// Bytes of each connection that need no room, so that small messages always arrive.
const FREE: usize = 8 << 10;

/// A stream that fails to read when its message finds no room.
#[derive(Debug)]
pub(super) struct Arriving<S> {
    stream: S,
    budget: BodyBudget,
    holder: Holder,
    /// Bytes of the message that is not whole.
    received: usize,
    /// The room of those beyond [`FREE`].
    room: Option<Share>,
    is_refused: bool,
}

impl<S> Arriving<S> {
    pub(super) fn new(stream: S, budget: BodyBudget, holder: Holder) -> Self {
        Self {
            stream,
            budget,
            holder,
            received: 0,
            room: None,
            is_refused: false,
        }
    }

    /// A message is whole. What was read of the next one does not count.
    pub(super) fn message_arrived(&mut self) {
        self.received = 0;
        self.room = None;
    }

    /// A control frame is whole, which may come within a message.
    pub(super) fn control_arrived(&mut self, payload: usize) {
        // Two bytes, and the mask.
        self.received = self.received.saturating_sub(6 + payload);
    }

    /// Returns whether a message found no room.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.received += bytes;
        let taken = self.room.as_ref().map_or(0, Share::amount);
        let missing = self.received.saturating_sub(FREE).saturating_sub(taken);
        if missing == 0 {
            return Ok(());
        }
        let Ok(more) = self.budget.take(self.holder, missing) else {
            self.is_refused = true;
            let reason = "the server reads as many bytes as it allows";
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason));
        };
        match &mut self.room {
            Some(room) => room.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arriving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.count(buffer.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arriving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
