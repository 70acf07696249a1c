//! Client side of the Agent Client Protocol.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on fails")
)]

mod error;
#[cfg(all(test, unix))]
mod lifeline;
mod process;
mod workspace;

pub use crate::error::{Error, Result};
pub use crate::process::{AgentCommand, AgentInput, AgentOutput, AgentProcess, Exit};
pub use crate::workspace::Workspace;
