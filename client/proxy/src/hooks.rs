//! Which hooks of a proxy a message passes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::mcp::MESSAGE;
use crate::passage::{Hook, HookFunction};
use crate::side::Side;

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

impl Message<'_> {
    fn is_for(self, hook: &Hook) -> bool {
        let is_request = matches!(hook.function, HookFunction::Request(_));
        let is_method = |method: &String| method == self.method;
        // Before the version is known, hooks of all versions count, so that no message gets past them.
        let is_version = |version| self.version.is_none_or(|known| known == version);
        is_request == self.is_request
            && hook.method.as_ref().is_none_or(is_method)
            && hook.version.is_none_or(is_version)
    }
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
        let of_method = |message: Message<'_>| {
            let mut hooks = self.all.iter().filter(|hook| hook.method.is_some());
            hooks.any(|hook| message.is_for(hook))
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
        let hooks = self.all.iter().filter(|hook| message.is_for(hook)).cloned();
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
