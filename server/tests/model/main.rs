//! Random schedules of clients of both versions that come, go, prompt, cancel, resume and read slowly, and of
//! servers that end: every client's view is the log from its cursor on.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "tests"
)]

mod client;
mod dice;
mod neutral;
mod schedule;

use schedule::Schedule;

/// Schedules that run, each with its own seed; `ACP_MODEL_SEEDS` sets another number.
fn seeds() -> u64 {
    let seeds = std::env::var("ACP_MODEL_SEEDS").ok();
    seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(60)
}

fn run_on(runtime: &mut tokio::runtime::Builder) {
    let only = std::env::var("ACP_MODEL_SEED").ok();
    let only: Option<u64> = only.and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..seeds(), |seed| seed..seed + 1) {
        // A runtime each, so that nothing of one schedule runs in the next one.
        let runtime = runtime.enable_all().build().unwrap();
        let limit = std::time::Duration::from_secs(60);
        let run = async { tokio::time::timeout(limit, Schedule::run(seed)).await };
        let ended = runtime.block_on(run);
        assert!(ended.is_ok(), "the schedule of seed {seed} hangs");
    }
}

#[test]
fn every_view_is_the_log_on_one_thread() {
    run_on(&mut tokio::runtime::Builder::new_current_thread());
}

#[test]
fn every_view_is_the_log_on_four_workers() {
    run_on(tokio::runtime::Builder::new_multi_thread().worker_threads(4));
}
