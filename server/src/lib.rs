//! The session runtime for agents of the [Agent Client Protocol](https://agentclientprotocol.com),
//! and the reference agent.
//!
//! The author of an agent writes one function, which answers a prompt. Sessions, queues,
//! cancellation, history, permissions, files and terminals are the runtime's:
//!
//! ```no_run
//! use acp_sdk::v1::{StopReason, ToolKind};
//! use acp_server::{Handler, HandlerResult, Turn};
//!
//! struct Greeter;
//!
//! impl Handler for Greeter {
//!     async fn prompt(&self, turn: Turn) -> HandlerResult<StopReason> {
//!         turn.text(format!("You said: {}", turn.prompt_text())).await?;
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
//! The [`ReferenceAgent`] is made like that too: words in a prompt make it call each method of
//! a client and send each kind of update, without a model and without a network.
//! `acp-server --help` lists them.

mod capability;
mod clock;
mod error;
mod handler;
mod reference;
mod runtime;
mod session;
pub mod store;
mod turn;

pub use acp_sdk::{HandlerError, HandlerResult};
pub use capability::Capability;
pub use error::{Error, Result};
pub use handler::{Handler, Profile};
pub use reference::{HELP, Reference, ReferenceAgent};
pub use runtime::Runtime;
pub use session::{Phase, Session, Settings};
pub use turn::{Decision, Exit, Terminal, ToolCall, Turn, UrlElicitation};

/// Serves one client on standard input and output, with sessions in memory, until the client
/// closes its side.
///
/// # Errors
///
/// As [`acp_sdk::serve_stdio`].
pub async fn serve_stdio<H: Handler>(handler: H) -> acp_sdk::Result<()> {
    acp_sdk::serve_stdio(Runtime::new(handler)).await
}
