//! Clients of versions 1 and 2 on one server.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests")]

mod children;
mod clients;
mod handler;
mod lifecycle;
mod questions;
mod replay;
mod settings;
mod shared;
