//! `acp-server status` and `acp-server stop`.

use std::io::Write as _;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::usage::usage;
use super::super::{Failure, note};
use super::args::Stop;
use crate::discovery::{Discovery, Found};

/// Time for a server to end after SIGTERM, at least.
const TERM: Duration = Duration::from_secs(10);

/// Time for a server beyond what it says that it needs.
const MARGIN: Duration = Duration::from_secs(2);

/// Time for a server to end after SIGKILL.
const KILL: Duration = Duration::from_secs(2);

/// Time between two looks at a server that should end.
const LOOK: Duration = Duration::from_millis(50);

/// Writes the servers of this user to standard output.
pub(crate) fn status() -> Result<(), Failure> {
    let found = Discovery::of_user()?.list()?;
    let output = &mut std::io::stdout().lock();
    if found.is_empty() {
        writeln!(output, "No acp-server is running.")?;
        return Ok(());
    }
    writeln!(
        output,
        "{:<6} {:<8} {:<6} {:<6} {:<10} HOST",
        "PORT", "PID", "STATE", "SCHEME", "AUTH"
    )?;
    for server in &found {
        let state = if server.alive { "alive" } else { "stale" };
        let (pid, scheme, auth, host) = match &server.announcement {
            Some(known) => {
                let [scheme, auth, host] = [&known.scheme, &known.auth, &known.host]
                    .map(|text| acp_sdk::text::single_line(text));
                (known.pid.to_string(), scheme, auth, host)
            }
            None => ("-".into(), "-".into(), "-".into(), "-".into()),
        };
        writeln!(
            output,
            "{:<6} {pid:<8} {state:<6} {scheme:<6} {auth:<10} {host}",
            server.port
        )?;
    }
    Ok(())
}

/// Stops one or all servers, and removes the files of those that are gone.
pub(crate) async fn stop(args: Stop) -> Result<(), Failure> {
    let found = Discovery::of_user()?.list()?;
    let (alive, stale): (Vec<_>, Vec<_>) = found.into_iter().partition(|server| server.alive);
    let chosen: Vec<Found> = match args.port {
        Some(port) => alive
            .into_iter()
            .filter(|server| server.port == port)
            .collect(),
        None if alive.len() > 1 && !args.all => {
            let ports: Vec<_> = alive.iter().map(|server| server.port.to_string()).collect();
            let ports = ports.join(", ");
            return usage(format!(
                "several servers run (ports {ports}). Use --port PORT or --all"
            ));
        }
        None => alive,
    };
    for server in &stale {
        if args.port.is_none_or(|port| port == server.port) {
            server.remove_if_stale();
        }
    }
    let output = &mut std::io::stdout().lock();
    match (chosen.is_empty(), args.port) {
        (true, Some(port)) => writeln!(output, "No acp-server runs on port {port}.")?,
        (true, None) => writeln!(output, "No acp-server is running.")?,
        _ => {}
    }
    let mut failed = Vec::new();
    for server in chosen {
        let port = server.port;
        match end(&server, args.serve_timeout).await {
            Ok(how) => writeln!(output, "stopped the server on port {port}{how}")?,
            Err(error) => failed.push(format!("the server on port {port}: {error}")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("cannot stop {}", failed.join("; ")).into())
}

/// Ends a server, which has this many seconds for it, or else what it says that it needs. Returns what should be said about it.
async fn end(server: &Found, seconds: Option<u64>) -> Result<&'static str, Failure> {
    let known = server.announcement.as_ref();
    let known = known.ok_or("its discovery file names no process")?;
    let pid = known.pid;
    let needed = Duration::from_secs(known.ends_within).saturating_add(MARGIN);
    let patience = seconds.map_or(TERM.max(needed), Duration::from_secs);
    send(pid, Signal::Term)?;
    if patience > TERM {
        let seconds = patience.as_secs();
        note(&format!("waiting up to {seconds} s for process {pid}"));
    }
    if ended(server, patience).await {
        return Ok("");
    }
    send(pid, Signal::Kill)?;
    if ended(server, KILL).await {
        server.remove_if_stale();
        return Ok(", which did not end by itself");
    }
    Err(format!("process {pid} does not end").into())
}

/// Waits until a server has ended. Its lock is the only sign: it is no child of this process.
async fn ended(server: &Found, wait: Duration) -> bool {
    let deadline = Instant::now().checked_add(wait);
    while server.is_alive() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Term,
    Kill,
}

#[cfg(unix)]
fn send(pid: u32, signal: Signal) -> Result<(), Failure> {
    use rustix::process::{Pid, Signal as Number, kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("its discovery file names no process")?;
    let number = match signal {
        Signal::Term => Number::TERM,
        Signal::Kill => Number::KILL,
    };
    match kill_process(pid, number) {
        // It has ended since.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(format!("cannot signal its process: {error}").into()),
    }
}

#[cfg(not(unix))]
fn send(pid: u32, _: Signal) -> Result<(), Failure> {
    Err(format!("this system has no signals; end process {pid} yourself").into())
}
