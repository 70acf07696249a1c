//! The command `acp-server`: the reference agent on standard input and output, or over HTTP.

use std::process::ExitCode;

use acp_server_cli::Args;
use clap::Parser;

fn main() -> ExitCode {
    acp_server_cli::main(Args::parse())
}
