//! Version 2 in terms of the vocabulary of the server, which is that of protocol version 1.
//!
//! Messages have the form that [`acp_sdk::convert`] gives them, which keeps `_meta` and unknown
//! variants wherever the other version has a place for them, and logs what it has none for. Here
//! is what depends on more than a message: what every client of version 2 can do, the slash
//! commands of a session, and the events of the log that are no updates in version 1.
//!
//! Nothing here waits, sends or stores.
//!
//! Migration guide: <https://agentclientprotocol.com/protocol/v2/migration>

pub(crate) mod requests;
#[cfg(test)]
mod tests;
pub(crate) mod updates;

use acp_sdk::convert::{Convert, convert_logged};
use acp_sdk::{HandlerError, HandlerResult};

/// Converts the params of a request of a client.
///
/// # Errors
///
/// -32602 when version 1 has no equivalent.
pub(crate) fn from_v2<A: Convert<B>, B>(params: A) -> HandlerResult<B> {
    let none = || HandlerError::invalid_params("", "the request has no form in version 1");
    convert_logged(params).ok_or_else(none)
}

/// Converts a result of the server.
///
/// # Errors
///
/// -32603 when version 2 has no equivalent.
pub(crate) fn to_v2<A: Convert<B>, B>(result: A) -> HandlerResult<B> {
    let none = || HandlerError::internal("the result has no form in version 2");
    convert_logged(result).ok_or_else(none)
}
