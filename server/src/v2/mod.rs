//! Conversions between the vocabulary of the server, that of protocol version 1, and version 2.
//!
//! Nothing here waits, sends or stores. `_meta` and unknown variants are kept wherever the other
//! version has a place for them. What it has no place for is lost:
//!
//! - To version 2: text of a diff beyond three lines around the change; output of a terminal, which
//!   belongs to a client of version 1; support of MCP servers over SSE; `_meta` of markers for
//!   methods that every agent of version 2 has; config options and forms that offer a choice among
//!   nothing; notices without a title; negative sizes and lines 0.
//! - From version 2: icons of resource links; sizes above 2⁶³ - 1; `_meta` of the outcome
//!   `cancelled` and of the position to replay from; values of forms that are null or objects.
//!
//! Migration guide: <https://agentclientprotocol.com/protocol/v2/migration>

mod content;
mod diff;
mod options;
pub(crate) mod questions;
pub(crate) mod requests;
pub(crate) mod responses;
#[cfg(test)]
mod tests;
mod tool_calls;
pub(crate) mod updates;

use acp_sdk::{Json, Patch};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a value as a type of the other version with the same JSON form.
///
/// `None` if the other version does not accept the value.
fn reread<A: Serialize, B: DeserializeOwned>(value: &A) -> Option<B> {
    Json::new(value).ok()?.parse().ok()
}

/// Converts a member that version 1 sends only to set it.
fn patch<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Absent, Patch::Value)
}

/// Converts the value of a patch.
fn map_patch<A, B>(patch: &Patch<A>, convert: impl FnOnce(&A) -> B) -> Patch<B> {
    match patch {
        Patch::Absent => Patch::Absent,
        Patch::Null => Patch::Null,
        Patch::Value(value) => Patch::Value(convert(value)),
    }
}
