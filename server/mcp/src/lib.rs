//! The servers of the Model Context Protocol (MCP) that a client names for a session, connected and supervised, for
//! any handler of [`acp_server`].
//!
//! ```no_run
//! use acp_sdk::v1::StopReason;
//! use acp_server::{AgentInfo, Handler, HandlerResult, Opening, Session, Settings, Turn};
//! use acp_server_mcp::{Options, Servers};
//!
//! struct Agent;
//!
//! impl Handler for Agent {
//!     type State = Servers;
//!
//!     fn info(&self) -> AgentInfo {
//!         acp_server_mcp::advertise(AgentInfo::new("my-agent", "1.0.0"))
//!     }
//!
//!     async fn open(&self, servers: &mut Servers, opening: &Opening) -> HandlerResult<Settings> {
//!         *servers = Servers::connect(&opening.session, &Options::default()).await;
//!         Ok(Settings::new())
//!     }
//!
//!     async fn prompt(&self, servers: &mut Servers, turn: Turn) -> HandlerResult<StopReason> {
//!         // A model would choose the tool and its arguments.
//!         for tool in servers.tools() {
//!             let output = servers.call(&tool.name, Default::default(), turn.cancelled()).await;
//!             let text = output.map_or_else(|error| error.to_string(), |output| output.text());
//!             turn.send_text(format!("{}: {text}\n", tool.name)).await?;
//!         }
//!         Ok(StopReason::EndTurn)
//!     }
//!
//!     async fn close(&self, servers: Servers, _: &Session) {
//!         servers.close().await;
//!     }
//! }
//! ```
//!
//! # Servers
//!
//! The transports are stdio and streamable HTTP and, with the feature `unstable`, the connection of the client that
//! names the server (MCP over ACP). `initialize` names the session: `capabilities.experimental.session`
//! has `session_id`, `project` (the name of the session's directory), and `role` and `spec` if
//! [`Options`] have them. A server that ends is started again after a wait ([`Options::restart`]), and calls fail
//! meanwhile; [`Servers::states`] has the reason. A failing server harms no other.
//!
//! # Tools
//!
//! [`tool_name`] has the rule for names. When a server notifies that its tools have changed, they are
//! read again; [`Servers::changed`] waits for it. Everything is bounded: start, list and calls in time,
//! messages, results, tools and errors in size.

mod connection;
mod error;
mod http;
mod names;
mod options;
mod output;
#[cfg(feature = "unstable")]
mod provided;
mod servers;
mod stdio;
mod supervisor;
mod tool;
mod wire;

pub use acp_client::Reconnect;
pub use error::CallError;
pub use names::tool_name;
pub use options::Options;
pub use output::CallOutput;
pub use servers::{Servers, advertise};
pub use supervisor::{ServerState, ServerStatus};
pub use tool::{McpTool, ToolAnnotations};
pub use wire::Progress;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the example of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/mcp.md")]
struct Guide;
