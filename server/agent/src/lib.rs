//! A kit for agents of the [Agent Client Protocol](https://agentclientprotocol.com): what stands
//! between a model and the protocol.
//!
//! Each part works alone with any [`Handler`](acp_server::Handler).

pub mod commands;
pub mod undo;
