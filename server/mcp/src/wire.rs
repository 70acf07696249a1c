//! The layer between transport and `rmcp`: progress, limits, and the end of a connection.
//!
//! `rmcp` starts a task for each notification, so they overtake each other and responses. They are handled here
//! instead, in the order of the server's messages and in bounded memory.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, JsonRpcMessage, ProgressNotificationParam, ProgressToken,
    RequestId, RequestMetaObject, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum number of requests of a server that it has not read the answers of.
const MAX_UNANSWERED: usize = 1024;

/// Progress of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far the call has come; it increases with each report.
    pub progress: f64,
    /// The [`progress`](Self::progress) of a complete call, if it is known.
    pub total: Option<f64>,
    /// What the tool does at the moment.
    pub message: Option<String>,
}

/// The callback for the progress of a call, which its request carries.
#[derive(Clone)]
pub(crate) struct OnProgress(pub(crate) Arc<dyn Fn(Progress) + Send + Sync>);

/// A call whose progress is reported.
struct Reported {
    request: RequestId,
    token: ProgressToken,
    callback: OnProgress,
}

/// The state of a connection that its transport and its owner share.
#[derive(Default)]
pub(crate) struct Wire {
    /// Cancelled when the connection has ended.
    pub(crate) ended: CancellationToken,
    /// Notified when the server's list of tools may have changed.
    pub(crate) tools_changed: Notify,
    /// Why this side has ended the connection.
    fault: Mutex<Option<String>>,
    reported: Mutex<Vec<Reported>>,
    unanswered: AtomicUsize,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// Ends the connection because the server `has` done something.
    pub(crate) fn fail(&self, has: impl Into<String>) {
        lock(&self.fault).get_or_insert(has.into());
        self.ended.cancel();
    }

    /// Returns why this side has ended the connection.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    fn sends(&self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                let ClientRequest::CallToolRequest(call) = &request.request else {
                    return;
                };
                let meta = call.extensions.get::<RequestMetaObject>();
                let token = meta.and_then(RequestMetaObject::get_progress_token);
                if let (Some(token), Some(callback)) = (token, call.extensions.get::<OnProgress>())
                {
                    lock(&self.reported).push(Reported {
                        request: request.id.clone(),
                        token,
                        callback: callback.clone(),
                    });
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                {
                    self.call_ended(cancelled.params.request_id.as_ref());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn call_ended(&self, request: Option<&RequestId>) {
        lock(&self.reported).retain(|reported| Some(&reported.request) != request);
    }

    fn progress(&self, params: ProgressNotificationParam) {
        let callback = {
            let reported = lock(&self.reported);
            let reported = reported
                .iter()
                .find(|reported| reported.token == params.progress_token);
            reported.map(|reported| reported.callback.clone())
        };
        if let Some(OnProgress(callback)) = callback {
            callback(Progress {
                progress: params.progress,
                total: params.total,
                message: params.message,
            });
        }
    }

    /// Returns the message if `rmcp` handles it.
    fn receives(
        &self,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        match &message {
            JsonRpcMessage::Notification(_) => {
                if let JsonRpcMessage::Notification(notification) = message {
                    match notification.notification {
                        ServerNotification::ProgressNotification(it) => self.progress(it.params),
                        // Changes before a subscription were not reported.
                        ServerNotification::ToolListChangedNotification(_)
                        | ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                            self.tools_changed.notify_one();
                        }
                        other => tracing::debug!(?other, "notification of an MCP server"),
                    }
                }
                return None;
            }
            JsonRpcMessage::Request(_) => {
                if self.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED {
                    self.fail("sent requests without reading the answers");
                    return None;
                }
            }
            JsonRpcMessage::Response(response) => self.call_ended(Some(&response.id)),
            JsonRpcMessage::Error(error) => self.call_ended(error.id.as_ref()),
        }
        Some(message)
    }
}

/// A transport with the [`Wire`] of its connection.
pub(crate) struct Watched<T> {
    inner: T,
    wire: Arc<Wire>,
    /// Time for the server to read a message, where sending does not wait for the answer.
    write_timeout: Option<Duration>,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, wire: Arc<Wire>, write_timeout: Option<Duration>) -> Self {
        Self {
            inner,
            wire,
            write_timeout,
        }
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.wire.ended.cancel();
    }
}

/// The error of sending a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError<E> {
    #[error(transparent)]
    Transport(E),
    #[error("the MCP server does not read its input")]
    NotRead,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = SendError<T::Error>;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.wire.sends(&message);
        let is_answer = matches!(
            message,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
        );
        let (wire, limit) = (self.wire.clone(), self.write_timeout);
        let send = self.inner.send(message);
        async move {
            let sent = match limit {
                Some(limit) => timeout(limit, send).await,
                None => Ok(send.await),
            };
            if is_answer {
                wire.unanswered.fetch_sub(1, Ordering::Relaxed);
            }
            match sent {
                Ok(sent) => sent.map_err(SendError::Transport),
                Err(_) => {
                    wire.fail("did not read its input");
                    Err(SendError::NotRead)
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // Nothing is lost if this future is dropped: no state is held across the wait.
            let message = tokio::select! {
                biased;
                () = self.wire.ended.cancelled() => None,
                message = self.inner.receive() => message,
            };
            let Some(message) = message else {
                self.wire.ended.cancel();
                return None;
            };
            if let Some(message) = self.wire.receives(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.wire.ended.cancel();
        self.inner.close().await.map_err(SendError::Transport)
    }
}

/// The output of a server, which ends at a message above the limit: `rmcp` would skip it, and the call would
/// wait for its result.
pub(crate) struct Lines<R> {
    reader: R,
    wire: Arc<Wire>,
    max_bytes: usize,
    /// Number of bytes of the current line.
    line: usize,
}

impl<R> Lines<R> {
    pub(crate) fn new(reader: R, wire: Arc<Wire>, max_bytes: usize) -> Self {
        Self {
            reader,
            wire,
            max_bytes,
            line: 0,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        let mut pieces = read.split(|byte| *byte == b'\n');
        // The first piece continues the current line, the last one begins the next.
        let mut longest = self.line + pieces.next().map_or(0, <[u8]>::len);
        self.line = longest;
        for piece in pieces {
            self.line = piece.len();
            longest = longest.max(self.line);
        }
        if longest > self.max_bytes {
            let limit = self.max_bytes;
            self.wire
                .fail(format!("sent a message of more than {limit} bytes"));
            buffer.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    async fn read(pieces: &[&str], max_bytes: usize) -> (String, Option<String>) {
        let wire = Arc::new(Wire::default());
        let mut pieces = in_pieces(pieces);
        let mut lines = Lines::new(&mut pieces, wire.clone(), max_bytes);
        let mut text = String::new();
        lines.read_to_string(&mut text).await.unwrap();
        (text, wire.fault())
    }

    /// A reader that returns one piece per read.
    fn in_pieces(pieces: &[&str]) -> Pieces {
        Pieces(
            pieces
                .iter()
                .rev()
                .map(|piece| (*piece).to_owned())
                .collect(),
        )
    }

    struct Pieces(Vec<String>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(piece) = self.0.pop() {
                buffer.put_slice(piece.as_bytes());
            }
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_a_fault() {
        use rmcp::model::{ClientRequest, PingRequest};
        use rmcp::transport::async_rw::AsyncRwTransport;
        let (pipe, _unread) = tokio::io::duplex(8);
        let (reader, writer) = tokio::io::split(pipe);
        let wire = Arc::new(Wire::default());
        let transport = AsyncRwTransport::new_client(reader, writer);
        let limit = Duration::from_secs(30);
        let mut transport = Watched::new(transport, wire.clone(), Some(limit));
        let request = ClientRequest::PingRequest(PingRequest::default());
        let sent = transport.send(JsonRpcMessage::request(request, RequestId::Number(1)));
        assert!(matches!(sent.await, Err(SendError::NotRead)));
        assert_eq!(wire.fault().as_deref(), Some("did not read its input"));
        assert!(transport.receive().await.is_none());
    }

    #[tokio::test]
    async fn lines_up_to_the_limit_are_read_wherever_the_pieces_end() {
        let pieces = ["1234", "5\n12", "345\n\n12345\n1", "2345\n"];
        assert_eq!(read(&pieces, 5).await, (pieces.concat(), None));
    }

    #[tokio::test]
    async fn a_longer_line_ends_the_output() {
        for pieces in [
            &["12\n3456"][..],
            &["12\n", "345", "6\n", "7"],
            &["123456\n1\n"],
        ] {
            let (text, fault) = read(pieces, 3).await;
            assert!(text.len() <= 6, "{text:?}");
            assert_eq!(
                fault.as_deref(),
                Some("sent a message of more than 3 bytes")
            );
        }
    }
}
