//! Clients of dialects against scripted agents, over a connection in memory.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod chimera;
mod client;
mod document;
mod openoxide;
mod otter;
mod otter_http;
mod script;
mod transcript;
