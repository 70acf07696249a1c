//! The command `acp-codegen`: Rust from a schema document, and its method table.

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Command::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-codegen: {error}");
            ExitCode::FAILURE
        }
    }
}
