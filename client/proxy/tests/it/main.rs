//! Proxies between a scripted client and a scripted agent.

#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(feature = "mcp")]
mod bridge;
mod chain;
mod component;
mod ends;
mod hooks;
#[cfg(feature = "mcp")]
mod mcp;
mod order;
mod passing;
mod proxies;
mod recordings;
mod restart;
mod wire;
