//! What the connection promises, over in-memory pipes and real endpoints.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "tests"
)]

mod answered;
mod bad_input;
mod budgets;
mod calls;
mod crossing;
mod depth;
mod end;
mod framing;
mod handlers;
mod layers;
mod limits;
mod load;
mod messages;
mod model;
mod order;
mod origin;
mod ownership;
mod proposals;
mod requests_in_order;
mod responses;
mod shutdown;
#[cfg(feature = "sockets")]
mod sockets;
mod spans;
mod streams;
mod support;
mod transcript;
mod wire;
