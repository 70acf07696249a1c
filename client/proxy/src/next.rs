//! What a hook passes a message on with.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use acp_sdk::json;
use acp_sdk::service::{Method, Notification, Params};
use acp_sdk::{HandlerError, HandlerResult};
use serde_json::value::RawValue;

use crate::endpoint::Endpoint;
use crate::merge;
use crate::passage::{HookFunction, RawForward, RawNext};
use crate::side::Side;

/// The answers of the other side, by which a hook's result is completed.
type LastAnswer = Arc<Mutex<Option<Box<RawValue>>>>;

/// Passes a request of method `M` on.
pub struct Next<M> {
    raw: RawNext,
    original: Option<Box<RawValue>>,
    answer: LastAnswer,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Next<M> {
    /// Sends the request to the other side, or to the next hook, and returns the result.
    ///
    /// Members that the types do not know are those of the original request.
    ///
    /// # Errors
    ///
    /// As [`RawNext::call`].
    pub async fn call(self, params: M::Params) -> HandlerResult<M::Result> {
        let original = self.original;
        let params = merge::completed::<M::Params>(original.as_deref(), &params)?;
        Self::send(self.raw, Some(params), &self.answer).await
    }

    /// Sends the request unchanged, and returns the result.
    ///
    /// # Errors
    ///
    /// As [`RawNext::call`].
    pub async fn pass(self) -> HandlerResult<M::Result> {
        Self::send(self.raw, self.original, &self.answer).await
    }

    /// Waits until the request is cancelled.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<M> {
        self.raw.cancelled()
    }

    async fn send(
        raw: RawNext,
        params: Option<Box<RawValue>>,
        answer: &LastAnswer,
    ) -> HandlerResult<M::Result> {
        let method = raw.passage.method.clone();
        let result = raw.call(params).await?;
        let decoded = json::from_str(result.get()).map_err(|error| {
            HandlerError::internal(format!("the answer to {method} is invalid: {error}"))
        })?;
        *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(decoded)
    }
}

/// Passes a notification `N` on.
pub struct Forward<N> {
    raw: RawForward,
    original: Option<Box<RawValue>>,
    notification: PhantomData<fn() -> N>,
}

impl<N: Notification> Forward<N> {
    /// Sends the notification to the other side, or to the next hook. Members that the types do not know
    /// are those of the original. A notification that is not sent is dropped.
    ///
    /// # Errors
    ///
    /// As [`RawForward::send`].
    pub async fn send(self, params: N::Params) -> HandlerResult<()> {
        let params = merge::completed::<N::Params>(self.original.as_deref(), &params)?;
        self.raw.send(Some(params)).await
    }

    /// Sends the notification unchanged.
    ///
    /// # Errors
    ///
    /// As [`RawForward::send`].
    pub async fn pass(self) -> HandlerResult<()> {
        self.raw.send(self.original).await
    }
}

/// Returns the function of a hook for the requests of one method.
pub(crate) fn request_function<M, F, Fut>(hook: F) -> HookFunction
where
    M: Method + 'static,
    F: Fn(Next<M>, M::Params) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<M::Result>> + Send + 'static,
{
    HookFunction::Request(Box::new(move |raw, original| {
        let params = match decoded::<M::Params>(original.as_deref()) {
            Ok(params) => params,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let answer = LastAnswer::default();
        let next = Next {
            raw,
            original,
            answer: answer.clone(),
            method: PhantomData,
        };
        let handling = hook(next, params);
        Box::pin(async move {
            let result = handling.await?;
            let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            merge::completed::<M::Result>(answer.as_deref(), &result)
        })
    }))
}

/// Returns the function of a hook for one notification.
pub(crate) fn notification_function<N, F, Fut>(hook: F) -> HookFunction
where
    N: Notification + 'static,
    F: Fn(Forward<N>, N::Params) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HandlerResult<()>> + Send + 'static,
{
    HookFunction::Notification(Box::new(move |raw, original| {
        let params = match decoded::<N::Params>(original.as_deref()) {
            Ok(params) => params,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let forward = Forward {
            raw,
            original,
            notification: PhantomData,
        };
        Box::pin(hook(forward, params))
    }))
}

fn decoded<P: Params>(params: Option<&RawValue>) -> HandlerResult<P> {
    let text = match params.map(RawValue::get) {
        // Methods whose params are all optional may be called without any.
        None | Some("null") => "{}",
        Some(text) => text,
    };
    json::from_str(text).map_err(|error| HandlerError::invalid_params(&error.path, error.message))
}

/// What every handle of a message knows of it. `path` leads to its passage.
macro_rules! message_handles {
    ($($name:ident $(<$param:ident>)? = $($path:ident).+;)*) => {$(
        impl$(<$param>)? $name$(<$param>)? {
            /// Returns the method.
            #[must_use]
            pub fn method(&self) -> &str {
                &self.$($path).+.method
            }

            /// Returns the side that has sent the message.
            #[must_use]
            pub fn from(&self) -> Side {
                self.$($path).+.from
            }

            /// Returns the version of the protocol, once client and agent have agreed.
            #[must_use]
            pub fn version(&self) -> Option<u16> {
                self.$($path).+.version
            }

            /// Returns the caller of the client.
            #[must_use]
            pub fn client(&self) -> Endpoint {
                self.$($path).+.endpoint(Side::Client)
            }

            /// Returns the caller of the agent.
            #[must_use]
            pub fn agent(&self) -> Endpoint {
                self.$($path).+.endpoint(Side::Agent)
            }
        }

        impl$(<$param>)? fmt::Debug for $name$(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.method()).finish()
            }
        }
    )*};
}

message_handles! {
    RawNext = passage;
    RawForward = passage;
    Next<M> = raw.passage;
    Forward<N> = raw.passage;
}
