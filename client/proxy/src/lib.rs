//! Proxies between clients and agents of the [Agent Client Protocol](https://agentclientprotocol.com), and
//! the conductor that runs chains of them.
//!
//! A [`Proxy`] stands between a client and an agent, and changes what passes: a team's tools, rules,
//! context, or an audit, for agents that somebody else has written.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on fails")
)]

mod conductor;
mod endpoint;
mod hooks;
mod link;
mod mcp;
mod merge;
mod message;
mod next;
mod outbox;
mod passage;
pub mod proxies;
mod proxy;
mod relay;
mod shared;
mod side;
mod trace;

pub use crate::conductor::{Conductor, ConductorError};
pub use crate::endpoint::Endpoint;
pub use crate::mcp::{BridgeCommand, bridge, run_bridge};
#[cfg(feature = "mcp")]
pub use crate::mcp::{Functions, McpTools, ToolCall, ToolError, ToolList, ToolOutput, ToolSession};
pub use crate::next::{Forward, Next};
pub use crate::passage::{RawForward, RawNext};
pub use crate::proxy::Proxy;
pub use crate::relay::End;
pub use crate::side::Side;
pub use crate::trace::Trace;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
