//! Remote agents from end to end: `acp-client` at the URL of an `acp-server`.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on fails"
)]

mod access;
mod chaos;
mod clients;
mod host;
mod mutants;
mod proxy;
mod sessions;
mod suite;
