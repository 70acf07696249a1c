//! The command `acp`, run as a process against agents that are shell scripts.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and unwrap says where"
)]
#![allow(unreachable_pub, reason = "nothing of a test is reachable")]
#![allow(missing_docs, reason = "tests are named after what they show")]
#![allow(
    dead_code,
    reason = "agents, hosts and servers are shared with the tests of acp-client"
)]

#[path = "../../../tests/it/agent.rs"]
mod agent;
#[cfg(feature = "remote")]
#[path = "../../../tests/remote/fake.rs"]
mod fake;
#[cfg(feature = "mcp")]
#[path = "../../../tests/mcp/host.rs"]
mod host;
#[path = "../../../src/lifeline.rs"]
mod lifeline;
#[path = "../../../../sdk/sandbox/tests/confine/mechanisms.rs"]
mod mechanisms;
mod pty;
#[path = "../../../tests/it/script.rs"]
mod script;

mod acp;
mod agents;
mod agents_file;
mod chat;
mod chat_prompt;
mod chat_sessions;
mod chat_switch;
#[cfg(feature = "proxy")]
mod conduct;
mod control;
#[cfg(feature = "dialects")]
mod dialect;
mod errors;
mod formats;
mod login;
#[cfg(feature = "mcp")]
mod mcp;
mod named;
mod permissions;
mod prompting;
mod record;
#[cfg(feature = "remote")]
mod remote;
mod sandbox;
mod secrets;
mod selected;
mod sessions;
mod stopping;
mod v2;
