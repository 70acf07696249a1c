//! The loop of a connection: reads, dispatches, writes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::builder::{ExplainClose, Options};
use super::dispatcher::Dispatcher;
use super::link::Link;
use super::{RunningConnection, Shared};
use crate::error::{CloseReason, Error, Result};
use crate::peer::Peer;
use crate::service::Service;
use crate::sync::{Sleep, sleep_until};
use crate::transcript::Recorder;
use crate::transport::Transport;

/// Rounds of the loop before other tasks of the runtime get a turn.
const ROUNDS: usize = 8;

/// Rounds of reading after the peer has stopped accepting output: more than any pipe holds.
const LAST_ROUNDS: usize = 128;

/// A connection that is open and does not run yet: [`start`](Self::start) it as a task, or poll it
/// as the future that it is. Dropping it ends the connection at once.
///
/// The future completes when the connection has ended and everything accepted before is written,
/// with [`Error::Closed`] when reading or writing failed or the peer stopped reading. It needs a
/// tokio runtime with time enabled. A task saves one system call per round trip beside a future in
/// `block_on`: its handlers wake it without a detour through the runtime's event queue.
///
/// `H` calls the other side: an `AgentHandle` or a `ClientHandle` of the protocol's version, or a
/// [`Peer`].
#[must_use = "a connection does nothing until it is started or polled"]
pub struct Connection<H = Peer> {
    handle: H,
    peer: Peer,
    future: Pin<Box<dyn Future<Output = Result<()>> + Send>>,
}

impl<H> std::fmt::Debug for Connection<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// The caller is not pinned with the future, which is pinned by its box.
impl<H> Unpin for Connection<H> {}

impl<H> Future for Connection<H> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.future.as_mut().poll(cx)
    }
}

impl<H> Connection<H> {
    /// Runs the connection as a task of its own.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self) -> RunningConnection<H> {
        let mut task = JoinSet::new();
        task.spawn(self.future);
        RunningConnection::new(self.handle, self.peer, task)
    }

    /// Returns the caller of the other side. Its clones do not keep the connection open.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Returns the untyped caller of the other side.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the connection with the untyped caller, so that those of several versions have one type.
    pub fn untyped(self) -> Connection {
        self.with_handle(|peer| peer)
    }

    pub(crate) fn new(
        handle: H,
        peer: Peer,
        future: impl Future<Output = Result<()>> + Send + 'static,
    ) -> Self {
        let future = Box::pin(future);
        Self {
            handle,
            peer,
            future,
        }
    }

    pub(crate) fn into_parts(self) -> (H, Peer, impl Future<Output = Result<()>> + Unpin) {
        (self.handle, self.peer, self.future)
    }

    /// Gives the connection a caller.
    pub(super) fn with_handle<G>(self, handle: impl FnOnce(Peer) -> G) -> Connection<G> {
        Connection {
            handle: handle(self.peer.clone()),
            peer: self.peer,
            future: self.future,
        }
    }
}

impl Connection {
    pub(super) fn open(
        protocol: Arc<dyn Service>,
        service: Arc<dyn Service>,
        options: Options,
        explain_close: Option<ExplainClose>,
        recorder: Option<Recorder>,
        transport: Transport,
    ) -> Self {
        let shared = Arc::new(Shared::new(Arc::downgrade(&protocol), options, recorder));
        let peer = Peer::new(shared.clone());
        let state = Loop {
            link: Link::new(transport, &shared),
            dispatcher: Dispatcher::new(shared, protocol, service),
            hold_timer: None,
        };
        Self::new(peer.clone(), peer, state.run(explain_close))
    }
}

pub(super) struct Loop {
    pub(super) link: Link,
    pub(super) dispatcher: Dispatcher,
    /// Fires when a response has been held for too long.
    hold_timer: Option<Pin<Box<Sleep>>>,
}

/// Why reading ended.
enum End {
    Eof,
    Closed,
    ReadFailed(Arc<io::Error>),
    WriteFailed(Arc<io::Error>),
}

impl Drop for Loop {
    fn drop(&mut self) {
        let shared = &self.dispatcher.shared;
        if let Some(transcript) = &shared.transcript {
            transcript.close();
        }
        shared.end(&CloseReason::Dropped);
    }
}

impl Loop {
    async fn run(mut self, explain_close: Option<ExplainClose>) -> Result<()> {
        let end = std::future::poll_fn(|cx| self.poll_running(cx)).await;
        let plain = match &end {
            End::Eof => CloseReason::EndOfInput,
            End::Closed => CloseReason::ClosedLocally,
            End::ReadFailed(error) => CloseReason::ReadFailed(error.clone()),
            End::WriteFailed(error) => CloseReason::WriteFailed(error.clone()),
        };
        let reason = match (&end, explain_close) {
            (End::Eof | End::WriteFailed(_), Some(explain)) => {
                self.explained(explain).await.unwrap_or(plain)
            }
            _ => plain,
        };
        let shared = self.dispatcher.shared.clone();
        shared.stop_reading(&reason);
        if matches!(end, End::WriteFailed(_)) {
            self.discard_output(&reason);
        }
        let finished = self.finish(&reason).await;
        shared.end(&reason);
        if let Some(transcript) = &shared.transcript {
            transcript.finish().await;
        }
        match end {
            End::Eof | End::Closed => finished.map_err(Error::Closed),
            End::ReadFailed(_) | End::WriteFailed(_) => Err(Error::Closed(reason)),
        }
    }

    /// Waits for the application's reason, within its limit. Output is written meanwhile.
    async fn explained(&mut self, mut explain: ExplainClose) -> Option<CloseReason> {
        let limit = self.dispatcher.shared.options.close_timeout;
        let explained = std::future::poll_fn(|cx| {
            let shared = self.dispatcher.shared.clone();
            shared.outbox.register(cx.waker());
            // A failure shows again when the connection is shut down.
            while let Poll::Ready(Ok(())) = self.link.poll_write(cx, &shared) {}
            explain.as_mut().poll(cx)
        });
        match tokio::time::timeout(limit, explained).await {
            Ok(reason) => Some(reason),
            Err(_) => {
                tracing::warn!(
                    ?limit,
                    "the reason for the end of the connection took too long"
                );
                None
            }
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        for _ in 0..ROUNDS {
            self.dispatcher.shared.outbox.begin_round();
            let wrote = match self.link.poll_write(cx, &self.dispatcher.shared) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(error)) => {
                    // The peer's last messages may explain why it no longer reads.
                    for _ in 0..LAST_ROUNDS {
                        let Poll::Ready(Ok(true)) = self.poll_read(cx) else {
                            break;
                        };
                    }
                    return Poll::Ready(End::WriteFailed(Arc::new(error)));
                }
                Poll::Pending => false,
            };
            if self.dispatcher.shared.outbox.close_requested() {
                return Poll::Ready(End::Closed);
            }
            self.dispatcher.reap(cx);
            // Before reading, because delivering a response frees its part of the budget. What this
            // round begins to hold is watched in the next: reading made progress.
            self.poll_hold(cx);
            let read = self.dispatcher.may_read()
                && match self.poll_read(cx) {
                    Poll::Ready(Ok(true)) => true,
                    Poll::Ready(Ok(false)) => return Poll::Ready(End::Eof),
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(End::ReadFailed(Arc::new(error)));
                    }
                    Poll::Pending => false,
                };
            // Handlers may have sent since: the next round writes that.
            if !wrote && !read && self.dispatcher.shared.outbox.wait(cx.waker()) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.link.poll_read(cx, &mut self.dispatcher)
    }

    /// Watches the time that responses are held.
    fn poll_hold(&mut self, cx: &mut Context<'_>) {
        while let Some(deadline) = self.dispatcher.hold_deadline() {
            let timer = self
                .hold_timer
                .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.dispatcher.expire_held();
            if deadline > Instant::now() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::service::{HandlerFuture, IncomingNotification, IncomingRequest};
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
        fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
            notification.handle_ext(|_, _, _| async { Ok(()) })
        }
    }

    /// Counts how often the loop is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers every request at once.
    struct Prompt;

    impl Service for Prompt {
        fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
            request.answer_ext(|_, _, params| async {
                Ok(params.unwrap_or_else(|| Json::from(serde_json::Value::Null)))
            })
        }
        fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
            notification.handle_ext(|_, _, _| async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn an_answer_is_written_in_the_poll_that_read_its_request_and_wakes_nobody() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let shared = Arc::new(Shared::new(
            Weak::<Prompt>::new(),
            ConnectionBuilder::new().options,
            None,
        ));
        let (reader, writer) = tokio::io::split(ours);
        let mut state = Loop {
            link: Link::new((reader, writer).into(), &shared),
            dispatcher: Dispatcher::new(shared, Arc::new(Prompt), Arc::new(Prompt)),
            hold_timer: None,
        };
        let wakes = Arc::new(Wakes::default());
        let waker = wakes.clone().into();
        let mut cx = Context::from_waker(&waker);
        assert!(state.poll_running(&mut cx).is_pending());
        let request = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"_x\"}\n";
        theirs.write_all(request).await.unwrap();
        assert_eq!(wakes.0.swap(0, Ordering::Relaxed), 1, "there is input");
        assert!(state.poll_running(&mut cx).is_pending());
        let mut answer = vec![0; 1 << 10];
        let bytes = theirs.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..bytes]);
        assert!(answer.contains("\"id\":7"), "{answer}");
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
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
        let shared = Arc::new(Shared::new(
            Weak::<Yielding>::new(),
            ConnectionBuilder::new().options,
            None,
        ));
        let mut state = Loop {
            link: Link::new((reader, tokio::io::sink()).into(), &shared),
            dispatcher: Dispatcher::new(shared, Arc::new(Yielding), Arc::new(Yielding)),
            hold_timer: None,
        };
        let mut most = 0;
        for _ in 0..10 {
            std::future::poll_fn(|cx| Poll::Ready(state.poll_running(cx).is_ready())).await;
            most = most.max(state.dispatcher.tasks.len());
            tokio::task::yield_now().await;
        }
        assert_eq!((most, state.dispatcher.tasks.len()), (100, 0));
    }
}
