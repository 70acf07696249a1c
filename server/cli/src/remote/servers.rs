//! `acp-server status` and `acp-server stop`.

use std::io::Write as _;
use std::time::Duration;

use super::super::usage::usage;
use super::super::{Failure, note};
use super::args::Stop;
use crate::discovery::{Discovery, Found};
use crate::stopping::{Stopped, TERM};

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
        let patience = args.serve_timeout.map(Duration::from_secs);
        let patience = patience.unwrap_or_else(|| server.patience());
        if patience > TERM {
            let seconds = patience.as_secs();
            note(&format!(
                "waiting up to {seconds} s for the server on port {port}"
            ));
        }
        match server.stop(patience).await {
            Ok(how) => {
                let how = match how {
                    Stopped::ByItself => "",
                    Stopped::Killed => ", which did not end by itself",
                };
                writeln!(output, "stopped the server on port {port}{how}")?;
            }
            Err(error) => failed.push(format!("the server on port {port}: {error}")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("cannot stop {}", failed.join("; ")).into())
}
