//! The remote endpoints, over real sockets.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod acp;
mod chaos;
mod http;
mod websocket;
