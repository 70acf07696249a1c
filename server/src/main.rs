//! The command `acp-server`: the reference agent on standard input and output.

use std::process::ExitCode;

use acp_server::{HELP, Reference};
use clap::Parser;

/// The reference agent of the Agent Client Protocol: serves one client on standard input and
/// output, deterministically, without a model or a network, until the client closes its side.
#[derive(Parser)]
#[command(version, after_help = HELP)]
struct Args {}

// One thread: there is nothing to compute, and no message has to change threads.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    Args::parse();
    match acp_server::serve_stdio(Reference).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-server: {error}");
            ExitCode::FAILURE
        }
    }
}
