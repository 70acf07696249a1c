//! Services and layers: from a received message to a handler.
//!
//! A [`Service`] finds the handler of each incoming message. Services are generated for the
//! traits of a protocol (`v1::AgentService` dispatches to a `v1::Agent`) and can be written by
//! hand. A [`Layer`] wraps a service, as in tower: see [`layers`] for those of this crate, and
//! [`ConnectionBuilder::layer`](crate::ConnectionBuilder::layer) for how to add one.

mod context;
mod extensions;
mod handler_future;
mod incoming;
mod layer;
pub mod layers;

pub use self::context::Context;
pub use self::handler_future::{HandlerFuture, Outcome};
pub use self::incoming::{IncomingNotification, IncomingRequest};
// Called by generated code.
#[doc(hidden)]
pub use self::incoming::{
    as_ext_notification, as_ext_request, unknown, unsupported, unsupported_ext,
};
pub use self::layer::Layer;
pub use crate::json::TextPattern;
pub use crate::jsonrpc::Cancellation;
pub use crate::runtime::{Method, Notification, Params, Payload};
use crate::transcript::MaskingRules;

/// Finds the handlers of the messages of one side.
///
/// Generated for the traits of a protocol. The methods run on the connection's loop, so they
/// must not block; what takes time belongs into the future of the handler.
pub trait Service: Send + Sync + 'static {
    /// Returns the handler of a request.
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture;

    /// Returns the handler of a notification.
    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture;

    /// Returns whether the id of a request may be null (default: yes, as in JSON-RPC). Otherwise
    /// such requests are answered with `-32600`, and not handled.
    fn has_null_ids(&self) -> bool {
        true
    }

    /// Returns the notification that cancels requests, in both directions (default: that of ACP).
    /// The connection handles it.
    fn cancellation(&self) -> &'static Cancellation {
        &crate::v1::CANCELLATION
    }

    /// Returns what transcripts show of the messages, by the documents of the protocol. Without
    /// rules they show the form of messages and no text.
    fn masking_rules(&self) -> Vec<&'static MaskingRules> {
        Vec::new()
    }
}
