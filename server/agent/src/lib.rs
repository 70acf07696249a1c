//! A kit for agents of the [Agent Client Protocol](https://agentclientprotocol.com): what stands
//! between a model and the protocol.
//!
//! Each part works alone with any [`Handler`](acp_server::Handler).

mod agent;
pub mod commands;
mod confined;
mod context;
mod delegate;
pub mod model;
mod tool;
pub mod tools;
pub mod undo;

pub use acp_server_inbox as inbox;
pub use agent::{Agent, AgentState, Mode};
pub use context::Context;
pub use delegate::{DelegateTo, delegate};
pub use tool::{Call, Output, Risk, Tool, ToolError, ToolOutcome, ToolSet};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
