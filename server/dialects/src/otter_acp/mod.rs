//! Otter's ACP server.

mod agent;
mod encode;
mod failure;
#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod protocol {
    include!(concat!(env!("OUT_DIR"), "/otter-acp.rs"));
}

pub use agent::OtterAcp;
pub use protocol::*;
