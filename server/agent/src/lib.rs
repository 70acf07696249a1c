//! A kit for agents of the [Agent Client Protocol](https://agentclientprotocol.com): what stands
//! between a model and the protocol.
//!
//! Each part works alone with any [`Handler`](acp_server::Handler).

mod agent;
pub mod commands;
mod context;
pub mod model;
mod tool;
pub mod tools;
mod confined;
pub mod undo;

pub use agent::{Agent, Mode};
pub use context::Context;
pub use tool::{BeforeChange, Call, Output, Risk, Tool, ToolError, ToolOutcome, ToolSet};
