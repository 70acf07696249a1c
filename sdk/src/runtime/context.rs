//! What a handler knows of the message that it handles.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Peer, decode_quietly};
use crate::connection::RequestState;
use crate::jsonrpc::RequestId;

/// The message being handled and the way back to who sent it.
#[derive(Debug, Clone)]
pub struct Context {
    peer: Peer,
    request: Option<Arc<RequestState>>,
}

impl Context {
    pub(crate) fn new(peer: Peer, request: Option<Arc<RequestState>>) -> Self {
        Self { peer, request }
    }

    /// The other side of the connection.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The id of the request; none while a notification is handled, or when the id is a
    /// number that the schema's 64 bits cannot hold.
    pub fn request_id(&self) -> Option<RequestId> {
        decode_quietly(&self.request.as_ref()?.id)
    }

    /// Waits until the peer cancels this request, or can no longer hear the answer. For a
    /// notification this never ends.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation>
    pub async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the peer has cancelled this request, or can no longer hear the answer.
    pub fn is_cancelled(&self) -> bool {
        self.request
            .as_ref()
            .is_some_and(|request| request.is_cancelled())
    }

    /// Keeps `value` until this request is over: its answer stands in the output buffer, before
    /// whatever is sent once the value has been dropped, or can no longer be sent. A lock
    /// guard or a place in a queue, kept here, is given up neither before the answer nor by
    /// chance. For a notification, and when the request is over already, it is dropped at once.
    pub fn keep_until_answered(&self, value: impl Send + 'static) {
        if let Some(request) = &self.request {
            request.keep(Box::new(value));
        }
    }

    /// Waits until this request is over, as [`keep_until_answered`](Self::keep_until_answered)
    /// has it. The handler itself would wait in vain: it is there before its answer is.
    pub fn answered(&self) -> impl Future<Output = ()> + Send + use<> {
        let (kept, dropped) = oneshot::channel::<()>();
        self.keep_until_answered(kept);
        async move {
            // It only ever ends by being dropped.
            let _ = dropped.await;
        }
    }
}
