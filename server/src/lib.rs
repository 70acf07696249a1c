//! The session runtime for agents of the [Agent Client Protocol](https://agentclientprotocol.com),
//! and the reference agent.
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
//! A [`Server`] keeps sessions in a [`store`], and attaches any number of clients to them. The
//! [`reference_agent`] is made like that too: words in a prompt make it call each method of a
//! client and send each kind of update, without a model and without a network.
//! `acp-server --help` lists them.

mod agent_info;
mod capability;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod cli;
mod clock;
mod connection;
mod error;
pub mod event;
mod handler;
#[cfg(feature = "hosted")]
mod hosted;
mod ids;
mod in_place;
mod limits;
mod local;
mod log;
mod panic;
mod raw_object;
mod reference;
#[cfg(feature = "remote")]
pub mod remote;
mod repeated;
mod server;
mod session;
pub mod store;
mod turn;
#[cfg(any(feature = "remote", feature = "cli"))]
mod usage;
#[cfg(feature = "v2")]
mod v2;

pub use acp_sdk::{HandlerError, HandlerResult};
pub use agent_info::AgentInfo;
pub use capability::Capability;
pub use connection::{Access, ServerConnection};
pub use error::{Error, Result};
pub use handler::Handler;
#[cfg(feature = "hosted")]
pub use hosted::{
    AgentProcesses, HostedAgent, HostedAgentBuilder, HostedError, HostedLimits, HostedState,
};
pub use limits::{
    Limits, LocalLimits, LocalTools, LogLimits, OnDisconnect, Policies, Retention, SecondPrompt,
};
#[doc(hidden)]
pub use reference::McpConnection;
pub use reference::{HELP, Reference, reference_agent};
pub use server::{Link, NextSession, Server, ServerBuilder, Statistics, StoredSessions};
pub use session::{
    Events, History, Opening, OpeningKind, PendingPermission, Phase, PromptHandle, Received,
    Session, Settings, SettingsChange,
};
pub use turn::{
    CommandOutput, Decision, Elicitation, Exit, FormValues, NewToolCall, Terminal, ToolCall, Turn,
    UrlElicitation,
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

/// The environment variable with the token of `acp-server serve`. Processes that an agent starts do not
/// inherit it.
pub(crate) const TOKEN_VARIABLE: &str = "ACP_SERVER_TOKEN";

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of the guide.
#[cfg(all(doctest, feature = "schemars", feature = "sqlite"))]
#[doc = include_str!("../../docs/server.md")]
struct Guide;
