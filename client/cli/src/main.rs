//! The command `acp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    acp_cli::main(std::env::args_os())
}
