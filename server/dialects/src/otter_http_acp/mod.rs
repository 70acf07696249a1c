//! The JSON-RPC methods of Otter's HTTP server.

mod agent;
mod encode;
#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod protocol {
    include!(concat!(env!("OUT_DIR"), "/otter-http-acp.rs"));
}

pub use agent::OtterHttpAcp;
pub use protocol::*;
