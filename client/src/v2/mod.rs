//! Version 2 in terms of this crate's vocabulary, which is that of protocol version 1.
//!
//! Messages have the form that [`acp_sdk::convert`] gives them. Here is what depends on more than
//! one message: whole messages and pieces of tool calls, and the end of the work for a prompt. An
//! update of version 2 without an equivalent in version 1 becomes an update of unknown kind with
//! its JSON ([`v1::SessionUpdate::Unknown`](acp_sdk::v1::SessionUpdate)): session states, messages
//! that replace received content, terminals of the agent, and plans that are not a list of entries.
//! MCP servers over SSE are rejected, because version 2 has no equivalent.
//!
//! Migration guide: <https://agentclientprotocol.com/protocol/v2/migration>

mod messages;
pub mod requests;
#[cfg(test)]
mod tests;
mod tool_calls;
mod updates;
mod usage;
mod work;

use std::hash::Hasher;

pub(crate) use self::updates::Converted;
pub use self::updates::Converter;
pub use self::usage::Usage;
pub use self::work::{End, Work};

/// A hash of bytes that does not depend on the chunks in which they are written (FNV-1a). It is not
/// cryptographic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the digest of an id. It replaces the id in tables, because the agent chooses the length
/// of ids.
pub(crate) fn digest(id: &str) -> u64 {
    let mut digest = Digest::default();
    digest.write(id.as_bytes());
    digest.finish()
}
