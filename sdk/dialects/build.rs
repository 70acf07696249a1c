//! Generates the types, traits and dispatch of each dialect into `OUT_DIR`, from its document.

use std::process::ExitCode;

use acp_codegen::{Builder, Document, Error};
use acp_schema::DIALECTS;

/// Definitions whose types are those of the runtime.
const RUNTIME: [(&str, &str); 2] = [
    ("SessionId", "::acp_sdk::v1::SessionId"),
    ("ErrorCode", "::acp_sdk::ErrorCode"),
];

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
    let mut builder = Builder::from_document(document.clone());
    for (definition, path) in RUNTIME {
        if document.def(definition).is_some() {
            builder = builder.external(definition, path);
        }
    }
    builder.write_to_out_dir(&format!("{name}.rs"))
}
