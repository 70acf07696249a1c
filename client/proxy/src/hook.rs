//! Hooks, and which of them a message passes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use acp_sdk::{HandlerError, HandlerResult};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::mcp::MESSAGE;
use crate::next::{RawForward, RawNext};
use crate::shared::RawResult;
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
            // `Hook::is_for` finds none for the other kind.
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

    fn is_for(&self, message: Message<'_>) -> bool {
        let is_request = matches!(self.function, HookFunction::Request(_));
        let is_method = |method: &String| method == message.method;
        // Before the version is known, hooks of all versions count, so that no message gets past them.
        let is_version = |version| message.version.is_none_or(|known| known == version);
        is_request == message.is_request
            && self.method.as_ref().is_none_or(is_method)
            && self.version.is_none_or(is_version)
    }
}

type Observe = dyn Fn(Side, &[u8]) + Send + Sync;

/// Sees each message as it came.
#[derive(Clone)]
pub(crate) struct Observer(pub(crate) Arc<Observe>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// A message that hooks are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) method: &'a str,
    pub(crate) is_request: bool,
    /// The version of the connection, once it is known.
    pub(crate) version: Option<u16>,
    pub(crate) from: Side,
}

/// The hooks of a proxy, from the client's side to the agent's.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    all: Vec<Arc<Hook>>,
    /// Methods with hooks of their own.
    methods: HashSet<String>,
    /// Whether there are hooks for all methods.
    has_general: bool,
}

impl Hooks {
    pub(crate) fn new(all: Vec<Arc<Hook>>) -> Self {
        Self {
            methods: all.iter().filter_map(|hook| hook.method.clone()).collect(),
            has_general: all.iter().any(|hook| hook.method.is_none()),
            all,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether a message has the method of hooks, but is a request in place of a notification or the
    /// other way round: such a message would get past them.
    pub(crate) fn is_wrong_kind(&self, message: Message<'_>) -> bool {
        let other = Message {
            is_request: !message.is_request,
            ..message
        };
        let of_method = |message| {
            let mut hooks = self.all.iter().filter(|hook| hook.method.is_some());
            hooks.any(|hook| hook.is_for(message))
        };
        // This method is both.
        message.method != MESSAGE
            && self.methods.contains(message.method)
            && of_method(other)
            && !of_method(message)
    }

    /// Returns the hooks for a message, in the order in which it passes them; `None` without any.
    pub(crate) fn find(&self, message: Message<'_>) -> Option<Arc<[Arc<Hook>]>> {
        // Most messages have none.
        if !self.has_general && !self.methods.contains(message.method) {
            return None;
        }
        let hooks = self.all.iter().filter(|hook| hook.is_for(message)).cloned();
        let mut hooks: Vec<_> = hooks.collect();
        if message.from == Side::Agent {
            hooks.reverse();
        }
        (!hooks.is_empty()).then(|| hooks.into())
    }

    /// Returns the proxy whose hooks are for other versions only.
    pub(crate) fn without_version(&self, version: u16) -> Option<Mismatch> {
        let mut versions: HashMap<&Arc<str>, Vec<u16>> = HashMap::new();
        for hook in &self.all {
            if let Some(version) = hook.version {
                versions.entry(&hook.proxy).or_default().push(version);
            }
        }
        let mut versions = versions.into_iter();
        let (proxy, mut versions) = versions.find(|(_, known)| !known.contains(&version))?;
        versions.sort_unstable();
        versions.dedup();
        let proxy = proxy.clone();
        Some(Mismatch { proxy, versions })
    }
}

/// A proxy that does not know the version of a connection.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) proxy: Arc<str>,
    /// Those that it knows.
    pub(crate) versions: Vec<u16>,
}
