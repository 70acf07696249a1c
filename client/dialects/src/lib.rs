//! Drives agents that speak another system's protocol, by [`acp_client`].
//!
//! An adapter presents such an agent as one of ACP. Sessions, turns, hooks, restarts and
//! [`ExternalAgent`](acp_client::ExternalAgent) work with it as with any other:
//!
//! ```no_run
//! use acp_client::{AgentCommand, Client};
//! use acp_client_dialects::Chimera;
//!
//! # async fn example() -> acp_client::Result<()> {
//! let agent = AgentCommand::new("python").args(["-m", "my_agent_server"]);
//! let client = Client::builder().spawn(Chimera::new().adapt(agent)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/dialects.md` has what each system's text says line by line, and where an agent of it differs from
//! one of ACP.

mod chimera;

pub use crate::chimera::Chimera;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
