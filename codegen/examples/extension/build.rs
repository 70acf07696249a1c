//! Generates the extension into `OUT_DIR`; the protocol itself is in `acp-sdk`.

#[path = "build/types.rs"]
mod types;

use std::process::ExitCode;

use acp_codegen::Builder;
use schemars::schema_for;

fn main() -> ExitCode {
    let builder = Builder::v1()
        .overlay("schema/extension.json")
        .schemas([
            schema_for!(types::ConfirmRequest).into(),
            schema_for!(types::ConfirmResponse).into(),
        ])
        .meta("PromptRequest", "example.com/trace", "Trace")
        .extends("::acp_sdk::v1");
    match builder.write_to_out_dir("extension.rs") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
