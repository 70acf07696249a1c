//! Files and commands on the machine of the agent, when no client offers them.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod bench;
mod commands;
mod display;
mod files;
mod lifeline;
mod policy;
