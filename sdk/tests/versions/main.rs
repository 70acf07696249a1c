//! Protocol version 2 over a connection, and how the two sides find out which version it
//! speaks: implementations of either version, of both, and peers that write raw bytes.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "tests"
)]

mod agents;
mod arrays;
mod clients;
mod combinations;
mod flow;
mod support;
mod table;

/// The toy version, as a crate that adds a version would include it.
#[allow(clippy::all, dead_code, reason = "generated")]
mod v3 {
    include!("v3/generated.rs");
}
