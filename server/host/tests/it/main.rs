//! Hosted agents: the reference agent, and a scripted one with faults.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod client;
mod delegating;
mod faults;
mod forking;
mod life;
mod logging_in;
mod passing;
mod processes;
mod reopening;
mod rules;
mod settings;
mod undoing;
mod v2;
