//! The context of a message that is being handled.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::extensions::Extensions;
use crate::connection::RequestState;
use crate::jsonrpc::RequestId;
use crate::peer::Peer;
use crate::runtime::decode_quietly;

/// The context of the message being handled: its request, its cancellation, and its sender.
#[derive(Debug, Clone)]
pub struct Context {
    peer: Peer,
    request: Option<Arc<RequestState>>,
    extensions: Extensions,
}

impl Context {
    pub(crate) fn new(
        peer: Peer,
        request: Option<Arc<RequestState>>,
        extensions: Extensions,
    ) -> Self {
        Self {
            peer,
            request,
            extensions,
        }
    }

    /// Returns the other side of the connection.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the value of this type that a layer has added to the message, such as who sent it: see
    /// [`IncomingRequest::with_extension`](crate::service::IncomingRequest::with_extension).
    pub fn extension<T: 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// Returns the id of the request; `None` for a notification, and for an id that is a number
    /// beyond 64 bits.
    pub fn request_id(&self) -> Option<RequestId> {
        decode_quietly(&self.request.as_ref()?.id)
    }

    /// Waits until the peer cancels this request, or the work of its session, or the connection stops
    /// reading. For a notification it never completes.
    ///
    /// A request is cancelled by `$/cancel_request` with its id, and a `session/prompt` also by
    /// `session/cancel` of its session. Answer a prompt with the stop reason `cancelled` then.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/cancellation> and
    /// <https://agentclientprotocol.com/protocol/v1/prompt-turn#cancellation>
    pub async fn cancelled(&self) {
        match &self.request {
            Some(request) => request.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether [`cancelled`](Self::cancelled) has completed.
    pub fn is_cancelled(&self) -> bool {
        self.request
            .as_ref()
            .is_some_and(|request| request.is_cancelled())
    }

    /// Waits until the peer cancels this request by its id, or the connection stops reading; not for
    /// the cancellation of the work of its session. For a notification it never completes.
    ///
    /// For implementations that cancel the work of sessions themselves.
    pub async fn request_cancelled(&self) {
        match &self.request {
            Some(request) => request.revoked().await,
            None => std::future::pending().await,
        }
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
