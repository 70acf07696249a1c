//! The JSON-RPC methods of Otter's HTTP server.

mod agent;
mod encode;

pub use acp_dialects::otter_http_acp::*;
pub use agent::OtterHttpAcp;
