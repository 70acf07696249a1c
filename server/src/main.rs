//! The command `acp-server`: the reference agent on standard input and output.

use std::io::Write as _;
use std::process::ExitCode;

use acp_server::cli::{self, Args};
use clap::Parser;

// One thread: there is nothing to compute, and no message has to change threads.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match cli::run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic where nobody listens.
            let _ = writeln!(std::io::stderr(), "acp-server: {error}");
            ExitCode::FAILURE
        }
    }
}
