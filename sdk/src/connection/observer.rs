//! Callbacks for input that was tolerated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Callbacks for invalid input that was tolerated. Default: no-op.
///
/// They are called on the connection's loop, so they must not block.
pub trait Observer: Send + Sync + 'static {
    /// The peer sent text that is no message. With `Content-Length` framing `text` is empty.
    fn invalid_message(&self, text: &[u8], reason: &str) {
        let _ = (text, reason);
    }

    /// A message of `bytes` bytes exceeded the limit and was skipped.
    fn message_too_long(&self, bytes: u64) {
        let _ = bytes;
    }

    /// A value that does not match its type was dropped from a message, as the schema allows.
    /// `path` is a JSON Pointer into the params or the result.
    fn dropped(&self, method: &str, path: &str, reason: &str) {
        let _ = (method, path, reason);
    }

    /// The peer reported an error that belongs to no request.
    fn uncorrelated_error(&self, error: &str) {
        let _ = error;
    }

    /// A response was delivered although a notification that preceded it is still being
    /// handled, because it had been held for `waited`
    /// ([`ConnectionBuilder::hold_timeout`](crate::ConnectionBuilder::hold_timeout)).
    fn response_overtook(&self, waited: Duration) {
        let _ = waited;
    }

    /// A request was handled although a notification of its session that preceded it is still
    /// being handled, because it had been held for `waited`
    /// ([`ConnectionBuilder::hold_timeout`](crate::ConnectionBuilder::hold_timeout)).
    fn request_overtook(&self, waited: Duration) {
        let _ = waited;
    }
}

/// The application's observer, if there is one. A panic in it affects nothing else.
#[derive(Clone, Default)]
pub(crate) struct ObserverSlot(Option<Arc<dyn Observer>>);

impl ObserverSlot {
    pub(super) fn new(observer: impl Observer) -> Self {
        Self(Some(Arc::new(observer)))
    }

    pub(crate) fn call(&self, callback: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.0
            && catch_unwind(AssertUnwindSafe(|| callback(&**observer))).is_err()
        {
            tracing::error!("an observer panicked");
        }
    }
}
