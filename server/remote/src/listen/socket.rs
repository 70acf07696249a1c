//! A socket that counts as open until it is dropped, by whoever has it at last.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::places::Place;

/// A socket of the listener. A WebSocket takes it along when HTTP has ended.
///
/// - It holds its place among the connections.
/// - Reads and writes fail when the listener drops its connections.
/// - Writes fail when the peer takes no byte for a time. No layer above could tell.
pub(super) struct Socket {
    stream: TcpStream,
    write_timeout: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Two, because reader and writer may be different tasks, which must both be woken.
    drop_reader: Pin<Box<WaitForCancellationFutureOwned>>,
    drop_writer: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: Arc<Place>,
    _tracked: TaskTrackerToken,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        write_timeout: Duration,
        dropped: &CancellationToken,
        place: Arc<Place>,
        tracked: TaskTrackerToken,
    ) -> Self {
        Self {
            stream,
            write_timeout,
            stalled: None,
            drop_reader: Box::pin(dropped.clone().cancelled_owned()),
            drop_writer: Box::pin(dropped.clone().cancelled_owned()),
            _place: place,
            _tracked: tracked,
        }
    }

    /// Returns what a write returned, or why there should be no more.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        if self.drop_writer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(dropped()));
        }
        let timeout = self.write_timeout;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

fn dropped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the listener has ended")
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() && self.drop_reader.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(dropped()));
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
