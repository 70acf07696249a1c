//! The untyped caller of the other side of a connection.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::connection::{Hooks, NotificationId, Preview, Shared};
use crate::error::{CloseReason, Error, Result};
use crate::json::Encode;
use crate::json::{Json, Leniency, decode_result};
use crate::jsonrpc::RpcError;
use crate::runtime::{Method, Notification, Params as _, Payload};
use crate::version::version_in;

/// Calls the other side of a connection. Clones call over the same connection.
///
/// A message is written when the future is first polled, and waits while the peer does not
/// read. Dropping the future of a request cancels the request (`$/cancel_request`).
///
/// The handle of a [`Context`](crate::Context) also tells the connection which handler makes a
/// call. Inside a notification handler, and in tasks that it spawns, call through the context
/// or its clones: the response to such a call does not wait for that handler.
#[derive(Debug, Clone)]
pub struct Peer {
    shared: Arc<Shared>,
    /// For requests through this handle.
    timeout: Option<Duration>,
    /// The notification that this handle was given to the handler of.
    origin: Option<NotificationId>,
}

impl Peer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            timeout: None,
            origin: None,
        }
    }

    /// Returns a handle whose calls come from the handler of a notification.
    pub(crate) fn in_handler_of(mut self, origin: NotificationId) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Returns a handle over the same connection whose requests fail with
    /// [`Error::TimedOut`] after `timeout` without an answer, and are cancelled then.
    ///
    /// The time spent waiting for a peer that does not read counts too.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..self.clone()
        }
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    ///
    /// [`Error::Response`] when the peer refuses, [`Error::Closed`] when the connection ends
    /// first, [`Error::Decode`] when the result does not fit, [`Error::InvalidResponse`] when the
    /// response has no result.
    pub async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result> {
        self.call_with::<M>(params, Hooks::default()).await
    }

    /// As [`call`](Self::call), and shows the response to `then` at its place in the order of
    /// messages: the notifications of the session before it have been handled, and none after it.
    /// The caller itself may run later than that.
    ///
    /// `then` receives the result as JSON, or the error. It must not block, and is dropped when the
    /// connection ends first.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_then<M: Method>(
        &self,
        params: &M::Params,
        then: impl FnOnce(std::result::Result<&str, &RpcError>) + Send + 'static,
    ) -> Result<M::Result> {
        let hooks = Hooks {
            then: Some(Box::new(then)),
            ..Hooks::default()
        };
        self.call_with::<M>(params, hooks).await
    }

    async fn call_with<M: Method>(&self, params: &M::Params, hooks: Hooks) -> Result<M::Result> {
        let session = params.session_id();
        let raw = self.request(M::NAME, Some(params), session, hooks).await?;
        self.decode(M::NAME, M::NEGOTIATES, &raw)
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub async fn notify<N: Notification>(&self, params: &N::Params) -> Result<()> {
        self.shared.wait_for_capacity().await?;
        self.shared.notify(N::NAME, Some(params))
    }

    /// Sends a request that the protocol does not define and waits for its result.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_ext(&self, method: &str, params: Option<&Json>) -> Result<Json> {
        let params = params.map(|params| params as _);
        let hooks = Hooks::default();
        let raw = self.request(method, params, None, hooks).await?;
        self.decode(method, None, &raw)
    }

    /// Sends a notification that the protocol does not define.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    pub async fn notify_ext(&self, method: &str, params: Option<&Json>) -> Result<()> {
        self.shared.wait_for_capacity().await?;
        self.shared.notify(method, params.map(|params| params as _))
    }

    /// Returns whether the connection takes another message without a wait.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    #[doc(hidden)]
    pub fn has_room(&self) -> Result<bool> {
        self.shared.has_room()
    }

    /// Waits until the connection takes another message.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    #[doc(hidden)]
    pub async fn room(&self) -> Result<()> {
        self.shared.wait_for_capacity().await
    }

    /// Sends a notification whose params `write` appends as JSON, at once: the caller has asked
    /// whether there is [room](Self::has_room). For runtimes that keep messages in their encoded
    /// form: the params must be valid for the method.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    #[doc(hidden)]
    pub fn notify_written(&self, method: &str, write: &dyn Fn(&mut Vec<u8>)) -> Result<()> {
        self.shared.notify_written(method, write)
    }

    /// Writes everything that was sent and then closes this side's output. The peer may still
    /// send, and the connection goes on until it closes its side too.
    pub fn close_output(&self) {
        self.shared.close_output();
    }

    /// Closes the connection: stops reading, fails pending calls with
    /// [`CloseReason::ClosedLocally`], cancels handlers, and writes what was sent before.
    ///
    /// Returns at once; [`closed`](Self::closed) waits for the end. Handlers have
    /// [`shutdown_timeout`](crate::ConnectionBuilder::shutdown_timeout) to complete.
    pub fn close(&self) {
        self.shared.request_close();
    }

    /// Returns whether the connection has ended: no call can succeed any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.end_reason().is_some()
    }

    /// Returns whether the connection reads no more: the peer has closed its side, or the
    /// connection is being closed. Requests in progress are cancelled then, and can still be
    /// answered for a while.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.shared.has_stopped_reading()
    }

    /// Waits for the end of the connection and returns its reason.
    pub async fn closed(&self) -> CloseReason {
        self.shared.ended().await
    }

    /// Sends a request whose result has a form that the caller finds out, and that `preview`
    /// sees before anything that the peer wrote after it.
    pub(crate) async fn call_previewed(
        &self,
        method: &str,
        params: &(dyn Encode + Sync),
        preview: Preview,
    ) -> Result<Box<RawValue>> {
        let hooks = Hooks {
            preview: Some(preview),
            ..Hooks::default()
        };
        self.request(method, Some(params), None, hooks).await
    }

    /// Sends a request, and cancels it if it takes longer than this handle allows.
    async fn request(
        &self,
        method: &str,
        params: Option<&(dyn Encode + Sync)>,
        session: Option<&str>,
        hooks: Hooks,
    ) -> Result<Box<RawValue>> {
        let call = self
            .shared
            .call(method, params, session, self.origin, hooks);
        let Some(after) = self.timeout else {
            return call.await;
        };
        match tokio::time::timeout(after, call).await {
            Ok(result) => result,
            Err(_) => Err(Error::TimedOut {
                method: method.to_owned(),
                after,
            }),
        }
    }

    /// Reads the result of a method, which names the version that it `negotiates`, if any.
    pub(crate) fn decode<T: Payload>(
        &self,
        method: &str,
        negotiates: Option<u16>,
        raw: &RawValue,
    ) -> Result<T> {
        let mut dropped = |leniency: Leniency| report(&self.shared, method, &leniency);
        decode_result(raw.get(), &mut dropped).map_err(|error| {
            // A response of another version may have another form.
            if let Some(expected) = negotiates
                && let Ok(version) = version_in(raw.get())
                && version != expected
            {
                return Error::UnsupportedVersion { version };
            }
            Error::Decode {
                method: method.to_owned(),
                path: error.path,
                reason: error.message,
            }
        })
    }
}

/// Reports that a part of a message was dropped.
pub(crate) fn report(shared: &Shared, method: &str, leniency: &Leniency) {
    let Leniency { path, reason, .. } = leniency;
    tracing::debug!(method, path, reason, "dropped a value from a message");
    shared.observe(|observer| observer.dropped(method, path, reason));
}
