//! Replies to outgoing requests, and their delivery.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::error::CloseReason;
use crate::jsonrpc::RpcError;

/// What a caller receives, once.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Box<RawValue>),
    Error(Box<RpcError>),
    /// The response cannot be used; the reason.
    Invalid(String),
    Closed(CloseReason),
    Overloaded,
}

/// Sees a result when it is read, before anything that the peer wrote after it.
pub(crate) type Preview = Box<dyn FnOnce(&RawValue) + Send>;

/// Sees a response when it is delivered, between the notifications before it and those after it.
pub(crate) type Then = Box<dyn FnOnce(std::result::Result<&str, &RpcError>) + Send>;

/// What else happens to a response than that its caller receives it.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) preview: Option<Preview>,
    pub(crate) then: Option<Then>,
}

/// A reply and its caller.
pub(crate) struct Delivery {
    pub(crate) caller: oneshot::Sender<Reply>,
    pub(crate) reply: Reply,
    pub(crate) hooks: Hooks,
}

impl Delivery {
    /// Wakes the caller: never called while a lock is held.
    pub(crate) fn send(self) {
        if let Some(then) = self.hooks.then {
            show(&self.reply, then);
        }
        // The caller may have been dropped.
        let _ = self.caller.send(self.reply);
    }
}

/// Shows a response to a function of the application.
fn show(reply: &Reply, then: Then) {
    let response = match reply {
        Reply::Result(result) => Ok(result.get()),
        Reply::Error(error) => Err(&**error),
        // There is no response.
        Reply::Invalid(_) | Reply::Closed(_) | Reply::Overloaded => return,
    };
    if catch_unwind(AssertUnwindSafe(|| then(response))).is_err() {
        tracing::error!("the function that was called with a response panicked");
    }
}
