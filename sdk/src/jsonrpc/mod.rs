//! JSON-RPC 2.0 without I/O: parsing and serializing of messages.
//!
//! Incoming text is borrowed: the envelope is split into slices of the line,
//! and `params`, `result` and `error` stay raw until their type is known.
//!
//! Spec: <https://www.jsonrpc.org/specification>

mod cancellation;
pub mod envelope;
mod incoming;
mod outgoing;
mod oversized;
mod types;

pub use cancellation::Cancellation;
pub(crate) use incoming::{Answer, Incoming, Outcome, clip, is_null, null_id, read};
pub(crate) use oversized::{OversizedKind, read_ends};
pub use types::{ErrorCode, RequestId, RpcError};

pub(crate) use outgoing::{Notification, Request, Response};
