#![doc = include_str!("../README.md")]
//! # Modules
//!
//! Types, the traits [`Agent`](v1::Agent) and [`Client`](v1::Client), and typed callers are
//! generated from the protocol's JSON Schema. The connection is [`ConnectionBuilder`]; what wraps
//! handlers is in [`service`].
//!
//! The feature `v2` adds the module `v2`, the draft of protocol version 2. The same functions
//! serve its agents and connect its clients. [`MultiVersion`] combines implementations of
//! several versions and negotiates: `examples/agent-v2.rs` is such an agent,
//! `examples/client-v2.rs` a client of version 2. The module `convert` converts values of one
//! version to the other.
//!
//! With the feature `schemars` the types implement `JsonSchema` of schemars 1 by the protocol's
//! own schema, for use in types that derive it.
//!
//! [`conversation`] folds the updates of a session into messages, tool calls and settings, for user
//! interfaces.
//!
//! The default feature `stdio` adds [`serve_stdio`] and [`stdio`]. The feature `sockets` adds
//! `Listener`, which serves on TCP and Unix sockets, and functions that connect to them. Without
//! both the crate compiles for `wasm32-unknown-unknown`, for reading and writing types: the standard
//! library has no clock there, which a connection needs.
//!
//! # Lenient and strict reading
//!
//! Messages are read leniently: an invalid value that the schema allows to be dropped is dropped
//! and reported to the [`Observer`], and the message is accepted. [`json::from_str`] reads text in
//! the same way, and [`json::from_str_reporting`] also returns what was dropped. Reading a type
//! with serde directly (`serde_json::from_str`) is strict. The types also work inside types of your own, and there with
//! `flatten`, `untagged` or `tag`, within the limits that the module [`json`] names.

// Generated code refers to this crate by name, so that the same text works in other crates.
extern crate self as acp_sdk;

mod connection;
pub mod conversation;
#[cfg(feature = "v2")]
pub mod convert;
mod error;
pub mod facts;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod json;
mod jsonrpc;
pub mod limits;
mod peer;
#[doc(hidden)]
pub mod runtime;
mod secret_variables;
pub mod service;
mod session_config;
mod sync;
pub mod text;
mod transcript;
mod transport;
mod version;

pub use crate::connection::{Connection, ConnectionBuilder, Observer, RunningConnection};
#[cfg(feature = "stdio")]
pub use crate::connection::{peek_stdio, serve_stdio, stdio};
pub use crate::error::{CloseReason, Error, HandlerError, HandlerResult, ProcessExit, Result};
pub use crate::json::{Json, Meta, Patch};
#[doc(hidden)]
pub use crate::jsonrpc::envelope;
pub use crate::jsonrpc::{ErrorCode, RequestId, RpcError};
pub use crate::peer::Peer;
#[doc(hidden)]
pub use crate::secret_variables::SECRET_VARIABLES;
pub use crate::service::Context;
pub use crate::transcript::{Recording, Transcript};
#[cfg(feature = "stdio")]
pub use crate::transport::FirstMessage;
#[doc(hidden)]
pub use crate::transport::push_line;
pub use crate::transport::{
    ChannelTransport, Framing, MessageTransport, Transport, channel, duplex,
};
#[cfg(feature = "sockets")]
pub use crate::transport::{Listener, RunningListener, connect_tcp, serve_tcp};
#[cfg(all(feature = "sockets", unix))]
pub use crate::transport::{connect_unix, serve_unix};
pub use crate::v1::V1;
#[cfg(feature = "v2")]
pub use crate::v2::V2;
pub use crate::version::{
    AgentSide, AnyVersion, ClientSide, IntoAgent, IntoClient, MultiVersion, Negotiated,
    Negotiation, Offer, ProtocolVersion,
};

/// Protocol version 1: types, traits and typed callers, generated from its schema.
pub mod v1 {
    include!(concat!(env!("ACP_SDK_GENERATED"), "/v1.rs"));
}

/// The extension methods of this project (`_acp-sdk/...`), for every version: types, traits, layers
/// and typed callers, generated from `extensions.json` of `acp-schema`.
///
/// `acp-server` answers them; agents advertise them in the `_meta` of their capabilities. Requests
/// are sent by [`AgentHandleExt`](extensions::AgentHandleExt); a client of version 2 calls them by
/// name, with the same types.
#[cfg(feature = "extensions")]
pub mod extensions {
    include!("../generated/extensions.rs");
}

/// The draft of protocol version 2: types, traits and typed callers, generated from its
/// schema. It may change with any release.
#[cfg(feature = "v2")]
pub mod v2 {
    include!(concat!(env!("ACP_SDK_GENERATED"), "/v2.rs"));
}

/// Serves an agent on a transport, such as a pair `(reader, writer)` of streams, until the
/// client closes its side.
///
/// # Errors
///
/// [`Error::Closed`] when reading or writing fails, or the client stops reading.
pub async fn serve<V, A: IntoAgent<V>>(agent: A, transport: impl Into<Transport>) -> Result<()> {
    let connection = ConnectionBuilder::new().agent(agent, transport);
    connection.start().closed().await
}

/// Connects a client to the agent behind a transport, such as a pair `(reader, writer)` of
/// streams. The connection must be started.
pub fn connect<V, C: IntoClient<V>>(
    client: C,
    transport: impl Into<Transport>,
) -> Connection<C::Agent> {
    ConnectionBuilder::new().client(client, transport)
}
