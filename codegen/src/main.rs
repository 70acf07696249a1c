//! The command `acp-codegen`: Rust from a schema document, its method table, and what
//! a new document changes.

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Command::parse().run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            cli::complain(format_args!("acp-codegen: {error}"));
            ExitCode::FAILURE
        }
    }
}
