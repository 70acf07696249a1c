//! Servers of the Model Context Protocol (MCP) inside of the connection.
//!
//! A client or a proxy declares a server of type `acp` for a session. The agent sends it requests in
//! `mcp/message`, each complete in itself as of MCP 2026-07-28, and the server notifies in `mcp/message`
//! while a request is active. [`McpTools`] is such a server. [`bridge()`] offers these servers to agents that
//! only know programs.
//!
//! Spec: <https://agentclientprotocol.com/rfds/mcp-over-acp>; the messages are those of the unstable schemas.

mod bridge;
mod capability;
#[cfg(feature = "mcp")]
mod function;
#[cfg(feature = "mcp")]
mod operation;
#[cfg(feature = "mcp")]
mod permit;
pub(crate) mod sessions;
#[cfg(feature = "mcp")]
mod tool_list;
#[cfg(feature = "mcp")]
mod tools;
mod wire;

pub use self::bridge::{BridgeCommand, bridge, run_bridge};
#[cfg(feature = "mcp")]
pub use self::function::{Functions, ToolCall, ToolError, ToolOutput};
#[cfg(feature = "mcp")]
pub use self::operation::ToolSession;
#[cfg(feature = "mcp")]
pub use self::tool_list::ToolList;
#[cfg(feature = "mcp")]
pub use self::tools::McpTools;
pub(crate) use self::wire::{MESSAGE, ToolCallOf};
