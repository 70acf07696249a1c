//! The reference agent of the Agent Client Protocol.
//!
//! It is deterministic, uses no model and no network, and exists so that clients have
//! something to talk to that does everything: words in a prompt make it call each client
//! method and send each kind of update. `acp-server --help` lists them.

mod agent;
mod sessions;
mod turn;
mod words;

pub use agent::ReferenceAgent;
pub use words::HELP;
