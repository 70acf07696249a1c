//! The command `acp-conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    acp_conformance::cli::main()
}
