//! A hook, and the passage of a message through the hooks of a proxy.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use acp_sdk::{HandlerError, HandlerResult};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::endpoint::Endpoint;
use crate::message;
use crate::shared::{Gate, RawResult, Shared};
use crate::side::Side;

type Function<N, R> = dyn Fn(N, Option<Box<RawValue>>) -> BoxFuture<'static, R> + Send + Sync;

pub(crate) enum HookFunction {
    Request(Box<Function<RawNext, RawResult>>),
    Notification(Box<Function<RawForward, HandlerResult<()>>>),
}

impl HookFunction {
    pub(crate) fn request(
        &self,
        next: RawNext,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'static, RawResult> {
        match self {
            Self::Request(function) => function(next, params),
            // `Hooks::find` returns none for the other kind.
            Self::Notification(_) => Box::pin(next.call(params)),
        }
    }

    pub(crate) fn notification(
        &self,
        forward: RawForward,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'static, HandlerResult<()>> {
        match self {
            Self::Notification(function) => function(forward, params),
            Self::Request(_) => Box::pin(forward.send(params)),
        }
    }
}

/// What a proxy does with the messages of one method, or of all.
pub(crate) struct Hook {
    /// The name of the proxy, for errors.
    pub(crate) proxy: Arc<str>,
    /// The protocol version whose types it reads; `None` for a hook of raw messages.
    pub(crate) version: Option<u16>,
    /// `None` for a hook of all methods.
    pub(crate) method: Option<String>,
    pub(crate) function: HookFunction,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("proxy", &self.proxy)
            .field("version", &self.version)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Hook {
    pub(crate) fn panicked(&self, method: &str) -> HandlerError {
        let proxy = &self.proxy;
        HandlerError::internal(format!("the proxy `{proxy}` has panicked in {method}"))
    }
}

/// A message on its way through the hooks of a proxy.
#[derive(Clone)]
pub(crate) struct Passage {
    pub(crate) shared: Arc<Shared>,
    /// The hooks for the message, in order.
    pub(crate) hooks: Arc<[Arc<Hook>]>,
    /// The first one that has not had it.
    pub(crate) at: usize,
    pub(crate) method: Arc<str>,
    pub(crate) from: Side,
    /// The version of the protocol, once it is known.
    pub(crate) version: Option<u16>,
    pub(crate) gate: Arc<Gate>,
}

impl Passage {
    /// Gives a request to the next hook, or sends it.
    pub(crate) fn request(
        mut self,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'static, RawResult> {
        let Some(hook) = self.hooks.get(self.at).cloned() else {
            return Box::pin(async move {
                let to = self.from.other();
                let call = self
                    .shared
                    .call(to, &self.gate, &self.method, params.as_deref());
                call.await
            });
        };
        self.at += 1;
        let method = self.method.clone();
        Box::pin(async move {
            let handling = async {
                hook.function
                    .request(RawNext { passage: self }, params)
                    .await
            };
            let handled = AssertUnwindSafe(handling).catch_unwind().await;
            handled.unwrap_or_else(|_| Err(hook.panicked(&method)))
        })
    }

    /// Gives a notification to the next hook, or sends it.
    pub(crate) fn notification(
        mut self,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'static, HandlerResult<()>> {
        let Some(hook) = self.hooks.get(self.at).cloned() else {
            return Box::pin(async move {
                let message = || message::call(None, &self.method, params.as_deref());
                let to = self.from.other();
                self.shared.send(to, &self.gate, message).await
            });
        };
        self.at += 1;
        let method = self.method.clone();
        Box::pin(async move {
            let forward = RawForward { passage: self };
            let handling = async { hook.function.notification(forward, params).await };
            let handled = AssertUnwindSafe(handling).catch_unwind().await;
            handled.unwrap_or_else(|_| Err(hook.panicked(&method)))
        })
    }

    pub(crate) fn endpoint(&self, side: Side) -> Endpoint {
        Endpoint::new(self.shared.clone(), self.gate.clone(), side)
    }
}

/// Passes a request on whose types the hook does not need.
pub struct RawNext {
    pub(crate) passage: Passage,
}

impl RawNext {
    /// Sends the request to the other side, or to the next hook, and returns the result.
    ///
    /// # Errors
    ///
    /// The error that the other side answers with; `-32800` after a cancellation; `-32603` if the other
    /// side has ended.
    pub async fn call(self, params: Option<Box<RawValue>>) -> HandlerResult<Box<RawValue>> {
        self.passage.request(params).await
    }

    /// Passes on what the sender's session sends after the request, from now on. Otherwise it waits until the
    /// hook calls somebody, or ends.
    pub fn release(&self) {
        self.passage.shared.release(&self.passage.gate);
    }

    /// Waits until the request is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let gate = self.passage.gate.clone();
        async move { gate.cancelled.cancelled().await }
    }

    /// Waits until the client or the agent has ended.
    #[cfg(feature = "mcp")]
    pub(crate) fn side_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.passage.shared.has_end.clone().cancelled_owned()
    }
}

/// Passes a notification on whose types the hook does not need.
pub struct RawForward {
    pub(crate) passage: Passage,
}

impl RawForward {
    /// Sends the notification to the other side, or to the next hook. A notification that is not sent is
    /// dropped.
    ///
    /// # Errors
    ///
    /// `-32603` if the other side has ended.
    pub async fn send(self, params: Option<Box<RawValue>>) -> HandlerResult<()> {
        self.passage.notification(params).await
    }
}
