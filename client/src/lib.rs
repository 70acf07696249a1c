//! Client side of the Agent Client Protocol.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on fails")
)]

pub mod cli;
mod client;
mod error;
#[cfg(all(test, unix))]
mod lifeline;
mod permission;
mod process;
mod session;
mod text;
mod workspace;

pub use crate::client::{Client, ClientBuilder, Session};
pub use crate::error::{Error, Result};
pub use crate::permission::{Ask, Decision, Permissions, Policy, Question};
pub use crate::process::{AgentCommand, AgentInput, AgentOutput, AgentProcess, Exit};
pub use crate::session::{Answered, Event, Missed, Outcome, Prompt, Turn};
pub use crate::workspace::Workspace;
