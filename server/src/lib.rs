//! The session runtime for agents of the [Agent Client Protocol](https://agentclientprotocol.com),
//! and its stores.
//!
//! The author of an agent writes one function, which answers a prompt. Sessions, queues,
//! cancellation, history, several clients, permissions, files and terminals are the server's:
//!
//! ```no_run
//! use acp_sdk::v1::{StopReason, ToolKind};
//! use acp_server::{Handler, HandlerResult, Turn};
//!
//! struct Greeter;
//!
//! impl Handler for Greeter {
//!     type State = ();
//!
//!     async fn prompt(&self, _: &mut (), turn: Turn) -> HandlerResult<StopReason> {
//!         turn.send_text(format!("You said: {}", turn.prompt_text())).await?;
//!         let call = turn.tool_call("Write a greeting", ToolKind::Edit).await?;
//!         if turn.ask_permission(&call).await?.is_allowed() {
//!             turn.write_file("greeting.txt", "Hello!\n").await?;
//!             call.complete("Written.").await?;
//!         } else {
//!             call.reject().await?;
//!         }
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> acp_sdk::Result<()> { acp_server::serve_stdio(Greeter).await }
//! ```
//!
//! A [`Server`] keeps sessions in a [`store`], and attaches any number of clients to them. Other
//! crates build on it:
//!
//! | crate | what it adds |
//! |---|---|
//! | `acp-server-remote` | HTTP, server-sent events and WebSocket, REST, a web page |
//! | `acp-server-host` | any stdio agent as a [`Handler`]; other agents inside of a turn |
//! | `acp-server-mcp` | the MCP servers of a session, connected and supervised |
//! | `acp-reference-agent` | an agent without a model, which uses each part of the protocol |
//! | `acp-server-cli` | the command `acp-server` |
//! | `acp-store-tests` | tests of a [`store::Store`] |

mod agent_info;
mod capability;
mod clock;
mod connection;
mod error;
pub mod event;
mod handler;
mod ids;
mod in_place;
#[doc(hidden)]
pub mod internal;
mod limits;
mod local;
mod log;
mod login;
mod panic;
mod raw_object;
mod repeated;
mod server;
mod session;
pub mod store;
mod turn;
pub mod usage;
mod v2;

pub use acp_sdk::{HandlerError, HandlerResult};
pub use agent_info::{AgentInfo, ToolInfo};
pub use capability::Capability;
pub use connection::{Access, ServerConnection};
pub use error::{Error, Result};
pub use handler::{BoxFuture, Handler};
pub use limits::{
    Adoption, Limits, LocalLimits, LocalTools, LogLimits, OnDisconnect, OnTimeout, Policies,
    Retention, SecondPrompt,
};
pub use login::Login;
pub use server::{Link, NextSession, Server, ServerBuilder, Statistics, StoredSessions};
pub use session::{
    DecidePermissions, DecidedPermission, Events, History, InitialSettings, Input, Opening,
    OpeningKind, PendingPermission, Phase, PromptHandle, Received, Session, Settings,
    SettingsChange, Steered, UndoDirection, UndoRequest,
};
pub use turn::{
    Child, CommandOutput, Decision, Elicitation, Exit, FormValues, NewToolCall, Terminal, ToolCall,
    Turn, UrlElicitation, text_of,
};

/// Serves one client on standard input and output until it closes its side, with sessions in
/// memory.
///
/// # Errors
///
/// As [`acp_sdk::serve_stdio`].
pub async fn serve_stdio(handler: impl Handler) -> acp_sdk::Result<()> {
    Server::new(handler).serve_stdio().await
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of the guide.
#[cfg(all(doctest, feature = "schemars", feature = "sqlite"))]
#[doc = include_str!("../../docs/server.md")]
struct Guide;
