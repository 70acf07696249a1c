//! Generates the types and traits of protocol version 1 into `OUT_DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Set by cargo-fuzz.
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    let mut builder = acp_codegen::Builder::v1();
    if std::env::var_os("CARGO_FEATURE_UNSTABLE").is_some() {
        builder = builder.unstable();
    }
    match builder.write_to_out_dir("v1.rs") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("acp-codegen: {error}");
            ExitCode::FAILURE
        }
    }
}
