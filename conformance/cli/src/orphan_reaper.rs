//! `acp-conformance guard`: the process that ends agents when this one is killed.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use acp_conformance::orphan_reaper;

/// How long agents may take to end after their input, and again after `SIGTERM`.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long agents may take to end, in seconds
    #[arg(value_parser = crate::proxy::seconds)]
    grace: Duration,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    orphan_reaper::stand(io::stdin().lock(), args.grace);
    ExitCode::SUCCESS
}

/// From now on, agents that are tested do not outlive this process.
pub(crate) fn protect() {
    // Without a guard, killing the suite leaves its agents to the end of their input.
    drop(protect_for(GRACE));
}

/// The same, with how long agents may take to end after their input, and again after `SIGTERM`.
pub(crate) fn protect_for(grace: Duration) -> io::Result<()> {
    orphan_reaper::protect(&std::env::current_exe()?, grace)
}
