//! OpenOxide's ACP server.

mod agent;
mod content;
mod encode;

pub use acp_dialects::openoxide::*;
pub use agent::{OpenOxide, prompted};
