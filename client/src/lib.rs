//! A client of the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! A [`Client`] starts an agent or connects to one, opens sessions and prompts them. A [`Turn`]
//! is the stream of events for one prompt and ends in an [`Outcome`]. The client also handles the
//! agent's requests: a [`Workspace`] serves files and terminals inside its directories, and
//! [`Permissions`] decide about tool calls.
//!
//! ```no_run
//! use acp_client::{AgentCommand, Client, Policy, Workspace};
//!
//! # async fn example() -> acp_client::Result<()> {
//! let client = Client::builder()
//!     .workspace(Workspace::new())
//!     .permissions(Policy::ApproveReads)
//!     .spawn(AgentCommand::new("opencode").arg("acp"))
//!     .await?;
//! let session = client.new_session("/home/me/project").await?;
//! let outcome = session.prompt("What is this project about?").await?.outcome().await?;
//! println!("{outcome}");
//! # Ok(())
//! # }
//! ```
//!
//! When the agent's process exits, pending calls fail with its exit status and the last lines of its
//! standard error. The command `acp` (crate `acp-cli`) is a thin layer on top.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on fails")
)]

#[cfg(feature = "agents-file")]
pub mod agents_file;
#[cfg(feature = "blocking")]
pub mod blocking;
mod client;
mod error;
mod exit;
mod external;
mod guard;
mod hooks;
mod idempotency;
#[doc(hidden)]
pub mod internal;
#[cfg(all(test, unix))]
mod lifeline;
mod login;
#[cfg(feature = "mcp")]
mod mcp;
mod permission;
mod process;
mod prompt_id;
mod reconnect;
#[cfg(feature = "remote")]
pub mod remote;
#[cfg(feature = "review")]
pub mod review;
mod session;
mod steering;
mod text_file;
mod v2;
mod workspace;

pub use crate::client::{Child, Client, ClientBuilder, Session, SessionList};
pub use crate::error::{Error, Result};
pub use crate::exit::Exit;
pub use crate::external::{
    Call, ExternalAgent, ExternalAgentEvent, ExternalAgentEventKind, Forward, Supervisor,
    TaskInput, TaskMetadata, TaskResult,
};
pub use crate::hooks::{
    Buffers, ConnectionId, Elicitation, Extensions, Files, InvalidAnswer, OpenFiles,
    SessionContext, Terminals, check_form,
};
pub use crate::login::LoginCommand;
#[cfg(feature = "mcp")]
pub use crate::mcp::{McpError, McpServer};
pub use crate::permission::{
    Ask, Asker, Decision, PermissionRequest, Permissions, Policy, Reason, Remember, Rule, RuleId,
    RuleSource, Rules, RulesError,
};
pub use crate::process::{
    AgentCommand, AgentInput, AgentOutput, AgentProcess, ForeignAgent, ProcessEnd,
};
pub use crate::reconnect::{ConnectionState, Reconnect};
pub use crate::session::{
    Answered, ChildConversations, ChildInfo, ChildUpdate, ConfigValue, ConversationStep, Event,
    Events, Gap, LiveConversation, Outcome, Phase, Prompt, SessionEvent, SessionSettings,
    TokenUsage, Turn,
};
pub use crate::steering::Steered;
pub use crate::workspace::{OutputChunk, OutputStream, Workspace};
/// A sandbox for [`AgentCommand::sandbox`] and [`Workspace::sandbox`].
pub use acp_sandbox::{Mechanism, Sandbox, SandboxError, SandboxErrorKind, SandboxSettings};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
