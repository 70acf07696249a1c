//! Chimera's ACP client, such as that of its tool for external agents.

mod agent;
mod encode;

pub use acp_dialects::chimera::*;
pub use agent::Chimera;
