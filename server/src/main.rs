//! The command `acp-server`: the reference agent on standard input and output, or over HTTP.

use std::process::ExitCode;

use acp_server::cli::{self, Args};
use clap::Parser;

fn main() -> ExitCode {
    cli::main(Args::parse())
}
