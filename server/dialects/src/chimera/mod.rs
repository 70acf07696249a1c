//! Chimera's ACP client, such as that of its tool for external agents.

mod agent;
mod encode;
#[allow(missing_docs, unreachable_pub, reason = "generated")]
mod protocol {
    include!(concat!(env!("OUT_DIR"), "/chimera.rs"));
}

pub use agent::Chimera;
pub use protocol::*;
