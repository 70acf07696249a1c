//! Any stdio agent as a [`Handler`](acp_server::Handler): a [`HostedAgent`] starts its command, and a
//! [`Server`](acp_server::Server) gives it a log, resumption, several clients and every endpoint.
//!
//! - **Nothing is lost on the way.** Updates, requests and answers are passed on with the members
//!   that this crate does not know. Ids of sessions are translated, and nothing else.
//! - **Processes** are shared by the sessions whose clients offer the same, or belong to one session
//!   each ([`AgentProcesses`]). A process is a group of its own; it is ended in steps.
//! - **A process that dies** ends its running turns with an error that names the command, its exit
//!   and its last lines. It is started again at the next need, after a growing delay, and has the
//!   session loaded; the replay does not enter the log again. An agent that cannot load sessions gets
//!   a new one, and the conversation says that it has forgotten.
//! - **A process that ignores a cancellation** is replaced: the session goes on in another one.
//! - **A process that nobody uses** is ended, if its sessions can go on in another one, and so is one that
//!   uses too much memory. What it has started ends with it.
//! - **A fork** of a session is one of the agent's session, if the agent can fork, or says that it is not.
//!   A deleted session is deleted in the agent, too.
//! - **A user can log in** from another machine: pages that the agent prints are opened by the client.
//! - **Bounds**: see [`HostedLimits`].
//!
//! ```no_run
//! use acp_server::Server;
//! use acp_server_host::HostedAgent;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = HostedAgent::builder("opencode").arg("acp").start().await?;
//! let server = Server::new(agent.clone());
//! server.serve_stdio().await?;
//! agent.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! Agents of protocol version 1 can be hosted, and those that speak version 2 only.
//! Clients may use either version.
//!
//! [`Delegate`] has a part of a turn done by another agent.

mod announced;
mod backoff;
mod builder;
mod caretaker;
mod delegate;
mod error;
mod forking;
mod handler;
mod incoming;
mod leftovers;
mod limits;
mod link;
mod logging_in;
mod messages;
mod offered;
mod opened;
mod opening;
mod process;
mod processes;
mod project_rules;
mod prompting;
mod questions;
mod redirect;
mod reopening;
mod routes;
mod rules;
mod session;
mod stderr;
mod steering;
mod supervisor;
mod terminals;
mod tools;
mod uses;
mod v2;
mod version;

pub use builder::HostedAgentBuilder;
pub use delegate::Delegate;
pub use error::HostedError;
pub use handler::{HostedAgent, HostedState};
pub use limits::{AgentProcesses, HostedLimits};
pub use project_rules::ProjectRules;
pub use rules::PermissionRules;
