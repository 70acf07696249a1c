//! Limits that both ends of a connection must agree on.

/// The default size of the largest accepted message, in bytes: 32 MiB.
///
/// It applies to every transport. A peer cannot send a larger message unless both ends have another
/// limit ([`max_message_bytes`](crate::ConnectionBuilder::max_message_bytes)).
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;
