//! The command `acp-server`: the reference agent on standard input and output, or over HTTP.

use std::process::ExitCode;

use acp_server::cli::{self, Args, Failure};
use clap::Parser;

fn main() -> ExitCode {
    let args = Args::parse();
    let ended = cli::runtime(&args)
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(cli::run(args)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => cli::failed(&failure),
    }
}
