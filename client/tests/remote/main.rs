//! The transports to remote agents, against servers that are played by hand.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on fails"
)]

mod command;
mod fake;
mod install;
mod lenient;
mod lost;
mod posts;
mod registry;
