//! What a proxy does with messages.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_sdk::service::{Method, Notification};
use acp_sdk::{HandlerResult, MessageTransport, Transport, channel};
use serde_json::value::RawValue;

use crate::hooks::{Hooks, Observer};
use crate::next::{Forward, Next, notification_function, request_function};
use crate::passage::{Hook, HookFunction, RawForward, RawNext};
use crate::relay::{End, Relay};
use crate::side::Side;

/// Bytes between two parts of a chain, in each direction.
pub(crate) const BETWEEN: usize = 64 << 10;

/// Stands between a client and an agent, and passes every message on that no hook takes, as the bytes that
/// came.
///
/// A hook has the params of a method and decides: it passes them on, changed or not, answers itself, or
/// calls either side. Hooks of requests run at the same time. What a session sends behind a message waits
/// until the hook has passed the message on, has called somebody, or has ended.
///
/// ```
/// use acp_proxy::{Next, Proxy};
/// use acp_sdk::v1::methods::Prompt;
/// use acp_sdk::v1::{ContentBlock, PromptRequest};
///
/// let proxy = Proxy::new("polite").on_request(|next: Next<Prompt>, mut request: PromptRequest| async move {
///     request.prompt.push(ContentBlock::from("Please."));
///     next.call(request).await
/// });
/// # let _ = proxy;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a proxy does nothing until it is served"]
pub struct Proxy {
    name: Arc<str>,
    hooks: Vec<Arc<Hook>>,
    observers: Vec<Observer>,
    hook_limit: Duration,
}

impl Proxy {
    /// Creates a proxy without hooks. Errors name it by `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into().into(),
            hooks: Vec::new(),
            observers: Vec::new(),
            hook_limit: Duration::from_secs(60),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a hook for the requests of a method of protocol version 1.
    ///
    /// Invalid params are answered with `-32602` before it.
    pub fn on_request<M, F, Fut>(self, hook: F) -> Self
    where
        M: Method + 'static,
        F: Fn(Next<M>, M::Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<M::Result>> + Send + 'static,
    {
        self.hook(Some(1), Some(M::NAME), request_function(hook))
    }

    /// Adds a hook for a notification of protocol version 1.
    ///
    /// One with invalid params is dropped.
    pub fn on_notification<N, F, Fut>(self, hook: F) -> Self
    where
        N: Notification + 'static,
        F: Fn(Forward<N>, N::Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        self.hook(Some(1), Some(N::NAME), notification_function(hook))
    }

    /// Adds a hook for the requests of a method of protocol version 2.
    pub fn on_request_v2<M, F, Fut>(self, hook: F) -> Self
    where
        M: Method + 'static,
        F: Fn(Next<M>, M::Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<M::Result>> + Send + 'static,
    {
        self.hook(Some(2), Some(M::NAME), request_function(hook))
    }

    /// Adds a hook for a notification of protocol version 2.
    pub fn on_notification_v2<N, F, Fut>(self, hook: F) -> Self
    where
        N: Notification + 'static,
        F: Fn(Forward<N>, N::Params) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        self.hook(Some(2), Some(N::NAME), notification_function(hook))
    }

    /// Adds a hook for the requests of a method in any version, and for one that nobody knows; `None` for
    /// all methods.
    pub fn on_raw_request<F, Fut>(self, method: Option<&str>, hook: F) -> Self
    where
        F: Fn(RawNext, Option<Box<RawValue>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<Box<RawValue>>> + Send + 'static,
    {
        let function = move |next, params| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(hook(next, params))
        };
        self.hook(None, method, HookFunction::Request(Box::new(function)))
    }

    /// Adds a hook for a notification in any version, and for one that nobody knows; `None` for all. The
    /// cancellation of requests is not among them.
    pub fn on_raw_notification<F, Fut>(self, method: Option<&str>, hook: F) -> Self
    where
        F: Fn(RawForward, Option<Box<RawValue>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult<()>> + Send + 'static,
    {
        let function = move |next, params| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(hook(next, params))
        };
        self.hook(None, method, HookFunction::Notification(Box::new(function)))
    }

    /// Adds a function that sees each message of either side as it came, before the hooks. It must not
    /// block.
    pub fn observe(mut self, observer: impl Fn(Side, &[u8]) + Send + Sync + 'static) -> Self {
        self.observers.push(Observer(Arc::new(observer)));
        self
    }

    /// Puts `other` behind this proxy, nearer to the agent.
    pub fn then(mut self, other: Self) -> Self {
        self.hooks.extend(other.hooks);
        self.observers.extend(other.observers);
        self
    }

    /// Sets how long a hook may hold back what follows its message (default: 60 s). Then the request is
    /// answered with an error that names the proxy, and a notification is dropped. A hook that waits for an
    /// answer of either side is not limited.
    pub fn hook_limit(mut self, limit: Duration) -> Self {
        self.hook_limit = limit;
        self
    }

    /// Passes messages between a client and an agent until the agent has ended, or the client cannot be
    /// written to.
    ///
    /// If the client ends first, the agent's input is closed, and what it still sends is passed on.
    pub async fn run(self, client: impl Into<Transport>, agent: impl Into<Transport>) -> End {
        let ends = [client.into(), agent.into()];
        let ends = ends.map(|transport| transport.into_messages(MAX_MESSAGE_BYTES));
        self.relay(ends).run().await
    }

    /// Puts the proxy between a client and an agent: returns the client's end of a connection with `agent`. The
    /// proxy runs in a task until one of them has ended.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn in_front_of(self, agent: impl Into<Transport>) -> Transport {
        let (client, near) = channel(BETWEEN);
        let agent = agent.into();
        tokio::spawn(async move { drop(self.run(near, agent).await) });
        client.into()
    }

    pub(crate) fn relay(self, ends: [Pin<Box<dyn MessageTransport>>; 2]) -> Relay {
        let hooks = (Hooks::new(self.hooks), self.observers);
        Relay::new(self.name, hooks, self.hook_limit, ends)
    }

    fn hook(mut self, version: Option<u16>, method: Option<&str>, function: HookFunction) -> Self {
        self.hooks.push(Arc::new(Hook {
            proxy: self.name.clone(),
            version,
            method: method.map(ToOwned::to_owned),
            function,
        }));
        self
    }
}
