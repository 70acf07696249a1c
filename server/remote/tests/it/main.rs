//! The remote endpoints, over real sockets.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod access;
mod acp;
mod agents;
mod answer;
mod audit;
mod chaos;
#[cfg(unix)]
mod container;
mod hooks;
mod http;
mod listen;
mod login;
mod metrics;
mod raw;
mod readers;
mod rest;
mod resuming;
mod rights;
#[cfg(feature = "rpc")]
mod rpc;
mod serving;
#[cfg(feature = "rpc")]
mod shares;
mod slow_socket;
mod tls;
mod tokens;
mod websocket;
