//! Agents as tools of MCP hosts, with the client of the crate `rmcp` as the host.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and unwrap says where"
)]
#![allow(unreachable_pub, reason = "nothing of a test is reachable")]
#![allow(missing_docs, reason = "tests are named after what they show")]
#![allow(dead_code, reason = "the agents are shared with other tests")]

#[path = "../it/agent.rs"]
mod agent;
mod host;
mod server;
