//! Generates the types and traits of the protocol's versions into `OUT_DIR`.

use std::process::ExitCode;

use acp_codegen::{Builder, Error};

fn main() -> ExitCode {
    // Set by cargo-fuzz.
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-codegen: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), Error> {
    let proposals = |builder: Builder| match feature("UNSTABLE") {
        true => builder.unstable(),
        false => builder,
    };
    proposals(Builder::v1()).write_to_out_dir("v1.rs")?;
    if feature("V2") {
        proposals(Builder::v2()).write_to_out_dir("v2.rs")?;
    }
    Ok(())
}

/// Whether a feature of this package is on.
fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}
