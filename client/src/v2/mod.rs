//! Conversions between this crate's vocabulary, which is that of protocol version 1, and version 2.
//!
//! Conversions neither wait nor send. An update of version 2 without an equivalent in version 1
//! becomes an update of unknown kind with its JSON
//! ([`v1::SessionUpdate::Unknown`](acp_sdk::v1::SessionUpdate)): session states, messages that
//! replace received content, terminals of the agent, and plans that are not a list of entries.
//! Lossy conversions:
//!
//! - To version 2: MCP servers over SSE are rejected, because version 2 has no equivalent.
//! - From version 2: ids of plans, because a session has one plan; icons of resource links, and
//!   sizes above 2⁶³ - 1; `_meta` of a tool call that is set to null; the difference between a
//!   cleared kind, status, title or name of a tool call and the values `other`, `pending` and
//!   empty; requests about tool calls and terminals; input of slash commands that is not text; file
//!   types of diffs, and the text of a diff without a patch in Git's format.
//!
//! Migration guide: <https://agentclientprotocol.com/protocol/v2/migration>

mod content;
mod diff;
mod messages;
mod options;
pub(crate) mod questions;
pub(crate) mod requests;
pub(crate) mod responses;
#[cfg(test)]
mod tests;
mod tool_calls;
mod updates;
mod usage;
mod work;

use std::hash::Hasher;

use acp_sdk::Json;
use acp_sdk::json::{Map, UnknownVariant};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::updates::{Converted, Converter};
pub(crate) use self::usage::Usage;
pub(crate) use self::work::{End, Work};

/// Reads a value as a type of the other version with the same JSON form.
///
/// `None` if the other version does not accept the value.
fn reread<A: Serialize, B: DeserializeOwned>(value: &A) -> Option<B> {
    Json::new(value).ok()?.parse().ok()
}

/// Returns an object as an unknown variant with all its members.
fn raw_variant<T: Serialize>(tag: &str, value: &T) -> UnknownVariant {
    let members: Option<Map<Json>> = reread(value);
    let members = members.unwrap_or_default();
    let members = members
        .iter()
        .map(|(name, value)| (name.to_owned(), value.clone()));
    UnknownVariant::new(tag, members.collect())
}

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
fn digest(id: &str) -> u64 {
    let mut digest = Digest::default();
    digest.write(id.as_bytes());
    digest.finish()
}
