//! Generates the protocol with the extension into `OUT_DIR`.

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
        .meta("PromptRequest", "example.com/trace", "Trace");
    match builder.write_to_out_dir("acp.rs") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
