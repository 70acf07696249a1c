//! The command `acp-server`, as processes.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

#[cfg(target_os = "linux")]
mod agent_user;
#[cfg(unix)]
mod agents;
#[path = "../../../remote/tests/it/answer.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod answer;
mod hooks;
#[cfg(unix)]
mod host;
mod killed;
#[cfg(unix)]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/local/lifeline.rs"]
mod lifeline;
#[cfg(unix)]
mod local;
mod log;
mod process;
mod prompt;
mod restarted;
mod retention;
mod serve;
mod sessions;
mod tokens;
mod turns;
mod upkeep;

/// Fails if this takes a minute.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let limit = std::time::Duration::from_secs(60);
    let result = tokio::time::timeout(limit, future.into_future()).await;
    result.expect("it takes a minute")
}
