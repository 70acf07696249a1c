//! The loop: reads chunks, hands on the messages in them, writes what has gathered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::JoinSet;

use super::Shared;
use super::messages::Core;
use super::options::{ExplainClose, Options};
use super::output::{Output, Writer};
use crate::error::{CloseReason, Error, Result};
use crate::runtime::{Peer, Service};
use crate::transcript::{Rules, Transcript};
use crate::transport::{Frame, Frames};

/// Chunks handled before other tasks of the runtime get a turn.
const ROUNDS: usize = 8;

/// Chunks that are still read from a peer that no longer listens: more than any pipe holds.
const LAST_CHUNKS: usize = 128;

/// Runs a connection; await it or spawn it. Dropping it ends the connection at once.
///
/// It ends when the peer has closed its side and every answer is written, with an error
/// when the streams fail. It needs a tokio runtime with time enabled.
#[must_use = "a connection does nothing until its driver is polled"]
pub struct Driver(Pin<Box<dyn Future<Output = Result<()>> + Send>>);

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Future for Driver {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

type Reader = Pin<Box<dyn AsyncRead + Send>>;

impl Driver {
    /// Runs the connection as a task of its own and waits for it; dropped, it ends the connection.
    ///
    /// A task is woken by its handlers without a detour through the runtime's event queue,
    /// which the future that `block_on` runs is not: that is one system call less a round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when reading or writing fails.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn spawned(self) -> Result<()> {
        let mut tasks = self.spawn();
        match tasks.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(failed)) if failed.is_panic() => {
                std::panic::resume_unwind(failed.into_panic())
            }
            // Nobody else can abort the task; a runtime that shuts down does.
            _ => Err(Error::Closed(CloseReason::Dropped)),
        }
    }

    /// Not in the future above, for every caller of that would compile it anew.
    fn spawn(self) -> JoinSet<Result<()>> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self);
        tasks
    }

    pub(crate) fn new(future: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    pub(crate) fn open(
        service: Arc<dyn Service>,
        options: Options,
        explain_close: Option<ExplainClose>,
        transcript: Option<Transcript>,
        reader: Reader,
        writer: Writer,
    ) -> (Peer, Self) {
        let recorder =
            transcript.and_then(|transcript| transcript.start(Rules::new(service.masking_rules())));
        let shared = Arc::new(Shared::new(options, recorder));
        let peer = Peer::new(shared.clone());
        let state = Loop {
            reader,
            frames: Frames::new(shared.options.framing, shared.options.max_message_bytes),
            output: Output::new(writer, shared.options.framing),
            core: Core::new(shared, service),
        };
        (peer, Self::new(state.run(explain_close)))
    }
}

struct Loop {
    reader: Reader,
    frames: Frames,
    output: Output,
    core: Core,
}

/// Why reading ended.
enum End {
    Eof,
    ReadFailed(Arc<io::Error>),
    WriteFailed(Arc<io::Error>),
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Some(transcript) = &self.core.shared.transcript {
            transcript.close();
        }
        self.core.shared.close(&CloseReason::Dropped);
    }
}

impl Loop {
    async fn run(mut self, explain_close: Option<ExplainClose>) -> Result<()> {
        let end = std::future::poll_fn(|cx| self.poll_running(cx)).await;
        let reason = match (&end, explain_close) {
            (End::ReadFailed(error), _) => CloseReason::ReadFailed(error.clone()),
            (End::Eof | End::WriteFailed(_), Some(explain)) => explain.await,
            (End::Eof, None) => CloseReason::EndOfInput,
            (End::WriteFailed(error), None) => CloseReason::WriteFailed(error.clone()),
        };
        let shared = self.core.shared.clone();
        shared.close_reading(&reason);
        if matches!(end, End::WriteFailed(_)) {
            shared.outbox.close(&reason);
        }
        let rest = std::future::poll_fn(|cx| self.poll_finishing(cx));
        // What is not done by then is dropped with the task set.
        let _ = tokio::time::timeout(shared.options.grace, rest).await;
        shared.close(&reason);
        if let Some(transcript) = &shared.transcript {
            transcript.finish().await;
        }
        match end {
            End::Eof => Ok(()),
            End::ReadFailed(_) | End::WriteFailed(_) => Err(Error::Closed(reason)),
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        for _ in 0..ROUNDS {
            self.core.shared.outbox.register(cx.waker());
            let wrote = match self.output.poll(cx, &self.core.shared) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(error)) => {
                    // The peer's last words may explain why it no longer listens.
                    for _ in 0..LAST_CHUNKS {
                        let Poll::Ready(Ok(true)) = self.poll_read(cx) else {
                            break;
                        };
                    }
                    return Poll::Ready(End::WriteFailed(Arc::new(error)));
                }
                Poll::Pending => false,
            };
            self.core.reap(cx);
            let read = self.core.may_read()
                && match self.poll_read(cx) {
                    Poll::Ready(Ok(true)) => true,
                    Poll::Ready(Ok(false)) => return Poll::Ready(End::Eof),
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(End::ReadFailed(Arc::new(error)));
                    }
                    Poll::Pending => false,
                };
            if !wrote && !read {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads one chunk and handles its lines; `false` at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut chunk = ReadBuf::new(self.frames.room());
        let result = ready!(self.reader.as_mut().poll_read(cx, &mut chunk));
        let bytes = chunk.filled().len();
        if let Err(error) = result {
            return match error.kind() {
                io::ErrorKind::Interrupted => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                // A peer that dies with unread data resets its socket: an end like any other.
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                    Poll::Ready(Ok(false))
                }
                _ => Poll::Ready(Err(error)),
            };
        }
        if bytes == 0 {
            if let Some(frame) = self.frames.rest() {
                record(&self.core.shared, &frame);
                self.core.frame(frame, cx);
            }
            return Poll::Ready(Ok(false));
        }
        self.frames.filled(bytes);
        while let Some(frame) = self.frames.next() {
            record(&self.core.shared, &frame);
            self.core.frame(frame, cx);
        }
        self.output.frame_as(self.frames.framing());
        Poll::Ready(Ok(true))
    }

    /// Lets the handlers end and writes their answers, if anybody hears them.
    fn poll_finishing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.core.shared.outbox.register(cx.waker());
            let open = self.core.shared.outbox.is_open();
            let written = if open {
                self.output.poll(cx, &self.core.shared)
            } else {
                Poll::Pending
            };
            let joined = self.core.tasks.poll_join_next(cx);
            if matches!(joined, Poll::Ready(Some(_))) {
                continue;
            }
            match written {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self
                    .core
                    .shared
                    .outbox
                    .close(&CloseReason::WriteFailed(Arc::new(error))),
                Poll::Pending if joined.is_ready() && (!open || self.output.is_empty()) => {
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Shows what was read to the transcript, if there is one.
fn record(shared: &Shared, frame: &Frame<'_>) {
    let Some(transcript) = &shared.transcript else {
        return;
    };
    match frame {
        Frame::Text(text) => transcript.received(text),
        Frame::TooLong(bytes) => transcript.skipped(format!("{bytes} bytes are above the limit")),
        Frame::Bad(_) => transcript.skipped("not a header".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{HandlerFuture, IncomingNotification, IncomingRequest};
    use crate::transport::Framing;
    use crate::{ConnectionBuilder, Json};

    /// Answers every request from a task of its own.
    struct Yielding;

    impl Service for Yielding {
        fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
            request.answer_ext(|_, _, params| async {
                tokio::task::yield_now().await;
                Ok(params.unwrap_or_else(|| Json::from(serde_json::Value::Null)))
            })
        }
        fn notification(&self, note: IncomingNotification<'_>) -> HandlerFuture {
            note.handle_ext(|_, _, _| async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_task_that_has_ended() {
        let (reader, mut input) = tokio::io::duplex(1 << 16);
        let requests: String = (0..100)
            .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_x\"}}\n"))
            .collect();
        tokio::io::AsyncWriteExt::write_all(&mut input, requests.as_bytes())
            .await
            .unwrap();
        let shared = Arc::new(Shared::new(ConnectionBuilder::new().options, None));
        let mut state = Loop {
            reader: Box::pin(reader),
            frames: Frames::new(Framing::Lines, 1 << 20),
            output: Output::new(Box::pin(tokio::io::sink()), Framing::Lines),
            core: Core::new(shared, Arc::new(Yielding)),
        };
        let mut most = 0;
        for _ in 0..10 {
            std::future::poll_fn(|cx| Poll::Ready(state.poll_running(cx).is_ready())).await;
            most = most.max(state.core.tasks.len());
            tokio::task::yield_now().await;
        }
        assert_eq!((most, state.core.tasks.len()), (100, 0));
    }
}
