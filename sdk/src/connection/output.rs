//! The writing half: what the outbox has gathered goes out, one batch at a time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::Shared;
use crate::error::CloseReason;
use crate::transport::{Framing, with_headers};

pub(super) type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// The batch that is being written, and where to.
pub(super) struct Output {
    writer: Writer,
    /// As the peer does, once that is known.
    framing: Framing,
    batch: Vec<u8>,
    written: usize,
    /// Something was written since the last flush.
    dirty: bool,
    shut: bool,
}

/// A batch buffer above this size is given back after use.
const KEEP: usize = 1 << 20;

impl Output {
    pub(super) fn new(writer: Writer, framing: Framing) -> Self {
        Self {
            writer,
            framing,
            batch: Vec::new(),
            written: 0,
            dirty: false,
            shut: false,
        }
    }

    /// From the next batch on, messages are told apart like this.
    pub(super) fn frame_as(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Writes on; ready when it got anywhere, pending when there is nothing to do or no room.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<io::Result<()>> {
        if self.is_empty() {
            if self.batch.capacity() > KEEP {
                self.batch = Vec::new();
            }
            self.written = 0;
            if !shared.outbox.take(&mut self.batch) {
                self.batch.clear();
                return self.poll_idle(cx, shared);
            }
            if let Some(transcript) = &shared.transcript {
                transcript.sent(&self.batch);
            }
            if self.framing == Framing::ContentLength {
                self.batch = with_headers(&self.batch);
            }
        }
        let bytes = ready!(
            self.writer
                .as_mut()
                .poll_write(cx, &self.batch[self.written..])
        )?;
        if bytes == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.written += bytes;
        self.dirty = true;
        Poll::Ready(Ok(()))
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>, shared: &Shared) -> Poll<io::Result<()>> {
        if self.dirty {
            ready!(self.writer.as_mut().poll_flush(cx))?;
            self.dirty = false;
        }
        if shared.outbox.is_finishing() && !self.shut {
            ready!(self.writer.as_mut().poll_shutdown(cx))?;
            self.shut = true;
            // What is said from now on has no way out, which is no fault of the stream.
            let reason = CloseReason::ClosedLocally;
            shared.outbox.close(&reason);
        }
        Poll::Pending
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written >= self.batch.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnectionBuilder;

    #[tokio::test]
    async fn the_buffer_of_a_large_batch_is_given_back() {
        let shared = Shared::new(ConnectionBuilder::new().options, None);
        let mut output = Output::new(Box::pin(tokio::io::sink()), Framing::Lines);
        let large = "x".repeat(4 * KEEP);
        shared.notify("x", Some(&large)).unwrap();
        std::future::poll_fn(|cx| {
            while output.poll(cx, &shared).is_ready() {}
            Poll::Ready(())
        })
        .await;
        assert!(output.batch.capacity() <= KEEP && output.is_empty());
    }
}
