//! OpenOxide's ACP server.

mod agent;
mod content;
mod encode;
mod turn;

pub use acp_dialects::openoxide::*;
pub use agent::{OpenOxide, prompted};
pub use turn::{EndedTurn, TurnEvents, event_name};
