//! Nodes with one store: clients at any of them, and nodes that die.

#![allow(clippy::unwrap_used, reason = "tests")]

mod adopting;
mod balancer;
mod http;
mod metrics;
mod moving;
mod passing;
mod racing;
mod rpc;
mod shared;
mod tickets;
