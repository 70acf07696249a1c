//! The other side of a connection, as something to call.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::{Json, Leniency, Method, Notification, Params as _, Payload, decode_result};
use crate::connection::{Preview, Shared};
use crate::error::{Error, Result};
use crate::json::Encode;
use crate::version::version_in;

/// Calls the other side. Clones call over the same connection.
///
/// A message is written when the future is first polled, and waits while the
/// peer does not read. Dropping the future of a request cancels the request
/// (`$/cancel_request`).
#[derive(Debug, Clone)]
pub struct Peer {
    shared: Arc<Shared>,
    /// For requests through this handle.
    timeout: Option<Duration>,
}

impl Peer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            timeout: None,
        }
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
    /// first, [`Error::Decode`] when the result does not fit.
    pub async fn call<M: Method>(&self, params: &M::Params) -> Result<M::Result> {
        let raw = self
            .request(M::NAME, Some(params), params.session_id(), None)
            .await?;
        self.decode(M::NAME, M::NEGOTIATES, &raw)
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub async fn notify<N: Notification>(&self, params: &N::Params) -> Result<()> {
        self.shared.room().await?;
        self.shared.notify_typed(N::NAME, params)
    }

    /// Sends a request that the protocol does not define and waits for its result.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_ext(&self, method: &str, params: Option<&Json>) -> Result<Json> {
        let params = params.map(|params| params as _);
        let raw = self.request(method, params, None, None).await?;
        self.decode(method, None, &raw)
    }

    /// Sends a notification that the protocol does not define.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    pub async fn notify_ext(&self, method: &str, params: Option<&Json>) -> Result<()> {
        self.shared.room().await?;
        self.shared.notify(method, params.map(|params| params as _))
    }

    /// Writes everything out and closes our side of the stream. The peer may still write.
    pub fn finish(&self) {
        self.shared.finish();
    }

    /// Sends a request whose result has a form that the caller finds out, and that `preview`
    /// sees before anything that the peer wrote after it.
    pub(crate) async fn call_previewed(
        &self,
        method: &str,
        params: &(dyn Encode + Sync),
        preview: Preview,
    ) -> Result<Box<RawValue>> {
        let params = Some(params);
        self.request(method, params, None, Some(preview)).await
    }

    /// Sends a request, and cancels it if it takes longer than this handle allows.
    async fn request(
        &self,
        method: &str,
        params: Option<&(dyn Encode + Sync)>,
        session: Option<&str>,
        preview: Option<Preview>,
    ) -> Result<Box<RawValue>> {
        let call = self.shared.call(method, params, session, preview);
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

/// Tells whoever wants to know that part of a message was left out.
pub(super) fn report(shared: &Shared, method: &str, leniency: &Leniency) {
    let Leniency { path, reason, .. } = leniency;
    tracing::debug!(method, path, reason, "left a value out of a message");
    shared.options.observer.dropped(method, path, reason);
}
