//! `acp mcp`, with the client of the crate `rmcp` as the host.

mod command;
#[cfg(feature = "remote")]
mod http;
