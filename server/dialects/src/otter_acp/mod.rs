//! Otter's ACP server.

mod agent;
mod encode;
mod failure;

pub use acp_dialects::otter_acp::*;
pub use agent::OtterAcp;
