//! Agents of dialects, driven by the client.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod chimera;
mod fake;
mod ours;
#[cfg(unix)]
mod process;
