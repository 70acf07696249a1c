//! Calls of hooks.

use std::fmt;
use std::sync::Arc;

use acp_sdk::json;
use acp_sdk::service::{Method, Notification};
use acp_sdk::{HandlerError, HandlerResult};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::message;
use crate::shared::{Gate, RawResult, Shared};
use crate::side::Side;

/// Calls one side in the name of the proxy.
///
/// With its first call, or with passing its message on, a hook stops holding back what its session sends
/// after the message.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
    gate: Arc<Gate>,
    side: Side,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.side).finish()
    }
}

impl Endpoint {
    pub(crate) fn new(shared: Arc<Shared>, gate: Arc<Gate>, side: Side) -> Self {
        Self { shared, gate, side }
    }

    /// Sends a request, and returns the result. Dropped, it cancels the request.
    ///
    /// # Errors
    ///
    /// The error that the peer answers with; `-32603` if it has ended, or its result is invalid.
    pub async fn call<M: Method>(&self, params: &M::Params) -> HandlerResult<M::Result> {
        let params = encoded(params)?;
        let result = self.call_raw(M::NAME, Some(&params)).await?;
        json::from_str(result.get()).map_err(|error| {
            HandlerError::internal(format!("the answer to {} is invalid: {error}", M::NAME))
        })
    }

    /// Sends a request of any method.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_raw(&self, method: &str, params: Option<&RawValue>) -> RawResult {
        let call = self.shared.call(self.side, &self.gate, method, params);
        call.await
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// `-32603` if the peer has ended.
    pub async fn notify<N: Notification>(&self, params: &N::Params) -> HandlerResult<()> {
        let params = encoded(params)?;
        self.notify_raw(N::NAME, Some(&params)).await
    }

    /// Sends a notification of any method.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    pub async fn notify_raw(&self, method: &str, params: Option<&RawValue>) -> HandlerResult<()> {
        let message = || message::call(None, method, params);
        self.shared.send(self.side, &self.gate, message).await
    }
}

fn encoded(value: &impl Serialize) -> HandlerResult<Box<RawValue>> {
    serde_json::value::to_raw_value(value)
        .map_err(|error| HandlerError::internal(format!("cannot write the message: {error}")))
}
