//! Nodes with one store: clients at any of them, and nodes that die.

#![allow(clippy::unwrap_used, reason = "tests")]

mod balancer;
mod http;
mod moving;
mod passing;
mod rpc;
mod shared;
mod tickets;
