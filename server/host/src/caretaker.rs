//! Ends processes that nobody uses, that are old, or that use too much memory.

use std::sync::{Arc, Weak};
use std::time::Duration;

use acp_client::internal::{ProcessTree, resident_bytes};
use tokio::time::sleep;

use super::HostedLimits;
use super::process::Process;
use super::processes::Processes;

/// How many times a process is checked within the shortest time that it may be idle or live.
const CHECKS: u32 = 20;

/// Starts the task, if there is a limit to check. It ends with the processes.
pub(super) fn start(processes: &Arc<Processes>) {
    let Some(interval) = interval(processes.spec.limits()) else {
        return;
    };
    let closed = processes.closed.clone();
    let processes = Arc::downgrade(processes);
    tokio::spawn(async move {
        tokio::select! {
            () = closed.cancelled() => {}
            () = check_always(&processes, interval) => {}
        }
    });
}

/// Returns the time between two checks; `None` without a limit.
fn interval(limits: &HostedLimits) -> Option<Duration> {
    let times = [limits.idle_timeout, limits.max_age];
    let times = times.into_iter().filter(|time| !time.is_zero());
    let shortest = times.min().map(|time| time / CHECKS);
    let memory = (limits.max_memory > 0).then_some(limits.memory_interval);
    let interval = shortest.into_iter().chain(memory).min()?;
    Some(interval.max(Duration::from_millis(1)))
}

async fn check_always(processes: &Weak<Processes>, interval: Duration) {
    loop {
        sleep(interval).await;
        let Some(processes) = processes.upgrade() else {
            return;
        };
        let limits = processes.spec.limits();
        for process in processes.usable() {
            end_unused(&process, limits);
        }
        if limits.max_memory > 0 {
            end_large(processes.all(), limits.max_memory).await;
        }
    }
}

/// Ends a process that is not used, in the background.
fn end_unused(process: &Process, limits: &HostedLimits) {
    let HostedLimits {
        idle_timeout,
        max_age,
        ..
    } = *limits;
    let (command, lived) = (process.command(), process.lived());
    if !max_age.is_zero() && lived >= max_age && process.end_if_idle(|_| true) {
        tracing::info!(
            command,
            ?lived,
            "a process of the agent is old, and is ended"
        );
    } else if !idle_timeout.is_zero() && process.end_if_idle(|idle| idle >= idle_timeout) {
        tracing::info!(
            command,
            ?idle_timeout,
            "a process of the agent is not used, and is ended"
        );
    }
}

/// Ends the processes that use more memory than this, with those that they have started.
async fn end_large(mut processes: Vec<Arc<Process>>, limit: u64) {
    processes.retain(|process| process.is_running() && process.tree.is_some());
    let trees: Vec<ProcessTree> = processes
        .iter()
        .filter_map(|process| process.tree.clone())
        .collect();
    // It reads files of all processes of the system.
    let measured = tokio::task::spawn_blocking(move || resident_bytes(&trees));
    let Ok(measured) = measured.await else { return };
    for (process, bytes) in processes.iter().zip(measured) {
        if bytes > limit && process.is_running() {
            process.exceeds(&format!(
                "it and the processes that it has started use {} of memory, and the limit (max_memory) \
                 is {}",
                mebibytes(bytes),
                mebibytes(limit),
            ));
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_decides_how_often_is_checked() {
        let mut limits = HostedLimits {
            idle_timeout: Duration::ZERO,
            ..HostedLimits::default()
        };
        assert_eq!(interval(&limits), None);
        limits.max_age = Duration::from_secs(200);
        assert_eq!(interval(&limits), Some(Duration::from_secs(10)));
        limits.max_memory = 1;
        assert_eq!(interval(&limits), Some(limits.memory_interval));
        limits.idle_timeout = Duration::from_millis(20);
        assert_eq!(interval(&limits), Some(Duration::from_millis(1)));
    }
}
