//! A transport in use: its two forms behind one interface for the loop.
//!
//! A stream is read in chunks and written in batches, as many messages at a time as there are;
//! a message transport takes and gives one message at a time. Neither costs the other anything
//! but a branch.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::ReadBuf;

use super::Shared;
use super::dispatcher::Dispatcher;
use super::outbox::Taken;
use crate::transport::{
    Frame, FrameDecoder, Framing, MessageTransport, Oversized, Reader, Transport, TransportKind,
    Writer, with_headers,
};

/// A batch buffer above this size is freed after use.
const KEEP: usize = 1 << 20;

/// Messages received from a message transport before the loop writes again.
const ROUND: usize = 64;

pub(super) enum Link {
    Stream(Stream),
    Messages(Messages),
}

impl Link {
    pub(super) fn new(transport: Transport, shared: &Shared) -> Self {
        match transport.0 {
            TransportKind::Stream { reader, writer } => {
                let framing = shared.options.framing;
                Self::Stream(Stream {
                    reader,
                    frames: FrameDecoder::new(framing, shared.options.max_message_bytes),
                    writer,
                    framing,
                    batch: Vec::new(),
                    written: 0,
                    state: State::Clean,
                })
            }
            TransportKind::Messages(transport) => Self::Messages(Messages {
                transport,
                batch: Bytes::new(),
                state: State::Clean,
            }),
        }
    }

    /// Reads some input and dispatches the messages in it; `false` at the end of the input.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        dispatcher: &mut Dispatcher,
    ) -> Poll<io::Result<bool>> {
        match self {
            Self::Stream(stream) => stream.poll_read(cx, dispatcher),
            Self::Messages(messages) => messages.poll_read(cx, dispatcher),
        }
    }

    /// Writes some output: ready after progress, pending when there is nothing to do or no
    /// room. Flushes when everything is written; closes the output after
    /// [`Taken::Finished`](super::outbox::Taken).
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Stream(stream) => stream.poll_write(cx, shared),
            Self::Messages(messages) => messages.poll_write(cx, shared),
        }
    }

    /// Returns whether everything that was taken is written and flushed.
    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Stream(stream) => stream.is_empty() && stream.state != State::Dirty,
            Self::Messages(messages) => messages.batch.is_empty() && messages.state != State::Dirty,
        }
    }

    /// Discards unsent output: the transport failed.
    pub(super) fn discard(&mut self) {
        match self {
            Self::Stream(stream) => {
                (stream.batch, stream.written) = (Vec::new(), 0);
                stream.state = State::Closed;
            }
            Self::Messages(messages) => {
                messages.batch = Bytes::new();
                messages.state = State::Closed;
            }
        }
    }

    /// Returns whether the output is closed, and so nothing is left to write.
    pub(super) fn is_closed(&self) -> bool {
        let state = match self {
            Self::Stream(stream) => stream.state,
            Self::Messages(messages) => messages.state,
        };
        state == State::Closed
    }
}

/// Where the output stands behind the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Flushed.
    Clean,
    /// Written since the last flush.
    Dirty,
    Closed,
}

pub(super) struct Stream {
    reader: Reader,
    frames: FrameDecoder,
    writer: Writer,
    /// As the peer uses, once that is known.
    framing: Framing,
    batch: Vec<u8>,
    written: usize,
    state: State,
}

impl Stream {
    fn is_empty(&self) -> bool {
        self.written >= self.batch.len()
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        dispatcher: &mut Dispatcher,
    ) -> Poll<io::Result<bool>> {
        let mut chunk = ReadBuf::new(self.frames.room());
        let result = ready!(self.reader.as_mut().poll_read(cx, &mut chunk));
        let bytes = chunk.filled().len();
        if let Err(error) = result {
            return read_failed(error, cx);
        }
        if bytes == 0 {
            while let Some(frame) = self.frames.rest() {
                dispatcher.frame(frame, cx);
            }
            return Poll::Ready(Ok(false));
        }
        self.frames.filled(bytes);
        let is_strict = dispatcher.shared.options.ends_at_invalid_header;
        while let Some(frame) = self.frames.next() {
            let is_end = is_strict && matches!(frame, Frame::Bad(_));
            dispatcher.frame(frame, cx);
            if is_end {
                return Poll::Ready(Ok(false));
            }
        }
        self.framing = self.frames.framing();
        Poll::Ready(Ok(true))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<io::Result<()>> {
        if self.is_empty() {
            if self.batch.capacity() > KEEP {
                self.batch = Vec::new();
            }
            self.written = 0;
            let taken = shared.outbox.take(&mut self.batch);
            if taken != Taken::Batch {
                self.batch.clear();
                return self.poll_idle(cx, taken);
            }
            if let Some(transcript) = &shared.transcript {
                transcript.sent(&self.batch);
            }
            if self.framing == Framing::ContentLength {
                self.batch = with_headers(&self.batch);
            }
        }
        let rest = self.batch.get(self.written..).unwrap_or_default();
        let bytes = ready!(self.writer.as_mut().poll_write(cx, rest))?;
        if bytes == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += bytes;
        self.state = State::Dirty;
        Poll::Ready(Ok(()))
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>, taken: Taken) -> Poll<io::Result<()>> {
        if self.state == State::Dirty {
            ready!(self.writer.as_mut().poll_flush(cx))?;
            self.state = State::Clean;
        }
        if taken == Taken::Finished && self.state != State::Closed {
            ready!(self.writer.as_mut().poll_shutdown(cx))?;
            self.state = State::Closed;
        }
        Poll::Pending
    }
}

/// What a failed read means for the connection.
fn read_failed(error: io::Error, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
    match error.kind() {
        io::ErrorKind::Interrupted => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        // A peer that dies with unread data resets its socket: an end like any other.
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Poll::Ready(Ok(false)),
        _ => Poll::Ready(Err(error)),
    }
}

pub(super) struct Messages {
    transport: Pin<Box<dyn MessageTransport>>,
    /// Messages to send, a line each.
    batch: Bytes,
    state: State,
}

impl Messages {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        dispatcher: &mut Dispatcher,
    ) -> Poll<io::Result<bool>> {
        let max = dispatcher.shared.options.max_message_bytes;
        for received in 0..ROUND {
            let message = match self.transport.as_mut().poll_receive(cx) {
                Poll::Ready(Ok(Some(message))) => message,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Err(error)) => return read_failed(error, cx),
                Poll::Pending if received == 0 => return Poll::Pending,
                Poll::Pending => break,
            };
            let text = message.trim_ascii();
            if message.len() > max {
                let oversized = Oversized::of(&message);
                dispatcher.frame(Frame::TooLong(Box::new(oversized)), cx);
            } else if !text.is_empty() {
                dispatcher.frame(Frame::Text(text), cx);
            }
            if !dispatcher.may_read() {
                break;
            }
        }
        Poll::Ready(Ok(true))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<io::Result<()>> {
        if self.batch.is_empty() {
            let mut batch = Vec::new();
            let taken = shared.outbox.take(&mut batch);
            if taken != Taken::Batch {
                return self.poll_idle(cx, taken);
            }
            if let Some(transcript) = &shared.transcript {
                transcript.sent(&batch);
            }
            self.batch = batch.into();
        }
        self.state = State::Dirty;
        let transport = self.transport.as_mut();
        transport.poll_send_lines(cx, &mut self.batch)
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>, taken: Taken) -> Poll<io::Result<()>> {
        if self.state == State::Dirty {
            ready!(self.transport.as_mut().poll_flush(cx))?;
            self.state = State::Clean;
        }
        if taken == Taken::Finished && self.state != State::Closed {
            ready!(self.transport.as_mut().poll_close(cx))?;
            self.state = State::Closed;
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::ConnectionBuilder;
    use crate::service::{HandlerFuture, IncomingNotification, IncomingRequest, Outcome, Service};

    struct Unused;

    impl Service for Unused {
        fn request(&self, _: IncomingRequest<'_>) -> HandlerFuture {
            HandlerFuture::done(Outcome::Success)
        }
        fn notification(&self, _: IncomingNotification<'_>) -> HandlerFuture {
            HandlerFuture::done(Outcome::Success)
        }
    }

    #[tokio::test]
    async fn the_buffer_of_a_large_batch_is_freed() {
        let no_service = Weak::<Unused>::new();
        let shared = Shared::new(no_service, ConnectionBuilder::new().options, None);
        let (reader, writer) = (tokio::io::empty(), tokio::io::sink());
        let mut link = Link::new((reader, writer).into(), &shared);
        let large = "x".repeat(4 * KEEP);
        shared.notify("x", Some(&large)).unwrap();
        std::future::poll_fn(|cx| {
            while link.poll_write(cx, &shared).is_ready() {}
            Poll::Ready(())
        })
        .await;
        let Link::Stream(stream) = &link else {
            panic!("a pair of streams is a stream");
        };
        assert!(stream.batch.capacity() <= KEEP && link.is_drained());
    }
}
