//! The context of a message that is being handled.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::connection::RequestState;
use crate::jsonrpc::RequestId;
use crate::peer::Peer;
use crate::runtime::decode_quietly;

/// The context of the message being handled: its request, its cancellation, and its sender.
#[derive(Debug, Clone)]
pub struct Context {
    peer: Peer,
    request: Option<Arc<RequestState>>,
}

impl Context {
    pub(crate) fn new(peer: Peer, request: Option<Arc<RequestState>>) -> Self {
        Self { peer, request }
    }

    /// Returns the other side of the connection.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the id of the request; `None` for a notification, and for an id that is a number
    /// beyond 64 bits.
    pub fn request_id(&self) -> Option<RequestId> {
        decode_quietly(&self.request.as_ref()?.id)
    }

    /// Waits until the peer cancels this request, or the connection stops reading. For a
    /// notification it never completes.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation>
    pub async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether the peer has cancelled this request, or the connection stops reading.
    pub fn is_cancelled(&self) -> bool {
        self.request
            .as_ref()
            .is_some_and(|request| request.is_cancelled())
    }

    /// Drops `value` when the response to this request is in the output buffer, or can no longer
    /// be sent. Messages that are sent because of the drop follow the response. For a
    /// notification, and after the response, `value` is dropped at once.
    ///
    /// Use it for lock guards and places in a queue that must not be released before the
    /// response.
    pub fn keep_until_answered(&self, value: impl Send + 'static) {
        if let Some(request) = &self.request {
            request.keep(Box::new(value));
        }
    }

    /// Waits for the moment at which
    /// [`keep_until_answered`](Self::keep_until_answered) drops a value. Await it in a task:
    /// inside the handler itself it never completes.
    pub fn answered(&self) -> impl Future<Output = ()> + Send + use<> {
        let (kept, dropped) = oneshot::channel::<()>();
        self.keep_until_answered(kept);
        async move {
            // Nothing is ever sent.
            let _ = dropped.await;
        }
    }
}
