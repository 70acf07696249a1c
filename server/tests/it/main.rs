//! The reference agent against a real client in memory, and its binary on real pipes.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    reason = "tests"
)]

mod process;
mod words;
