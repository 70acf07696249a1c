//! Generates the types, traits and dispatch of each dialect into `OUT_DIR`, from its document.

use std::process::ExitCode;

use acp_codegen::{Builder, Document, Error};
use acp_schema::DIALECTS;

fn main() -> ExitCode {
    match DIALECTS
        .iter()
        .try_for_each(|(name, text)| write(name, text))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(name: &str, text: &str) -> Result<(), Error> {
    let document = Document::parse(&format!("dialects/{name}.json"), text)?;
    // Ids of sessions and codes are those of the runtime.
    Builder::from_document(document)
        .external("SessionId", "::acp_sdk::v1::SessionId")
        .external("ErrorCode", "::acp_sdk::ErrorCode")
        .write_to_out_dir(&format!("{name}.rs"))
}
