//! Hosted agents: the reference agent, and a scripted one with faults.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod client;
mod command;
mod delegating;
mod faults;
mod passing;
mod processes;
mod reopening;
mod restarted;
mod settings;

/// Fails if this takes a minute.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let limit = std::time::Duration::from_secs(60);
    let result = tokio::time::timeout(limit, future.into_future()).await;
    result.expect("it takes a minute")
}
