//! The command `acp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    acp_client::cli::main(std::env::args_os())
}
