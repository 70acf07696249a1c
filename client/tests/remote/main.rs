//! The transports to remote agents, with servers whose responses the tests write.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on fails"
)]

#[allow(dead_code, reason = "the server is shared with the tests of acp-cli")]
mod fake;
mod lenient;
mod lost;
mod posts;
