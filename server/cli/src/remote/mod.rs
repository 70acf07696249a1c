//! `acp-server serve`, `status` and `stop`.

mod agents;
pub(super) mod args;
mod hooks;
mod node;
pub(super) mod secrets;
mod serve;
mod servers;
mod signals;

pub(super) use serve::serve;
pub(super) use servers::{status, stop};
