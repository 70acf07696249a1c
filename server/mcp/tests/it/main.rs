//! The servers of a session against scripted servers.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod calls;
mod ending;
mod faults;
mod http;
mod program;
#[cfg(feature = "unstable")]
mod provided;
mod session;
mod support;
