//! Generates the types and traits of protocol version 1 into `OUT_DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match acp_codegen::Builder::v1().write_to_out_dir("v1.rs") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-codegen: {error}");
            ExitCode::FAILURE
        }
    }
}
