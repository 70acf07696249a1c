//! Generates the types and traits of the protocol's versions into `OUT_DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Set by cargo-fuzz.
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    // Cargo would otherwise run the script again for any change to the crate.
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "generate")]
    if let Err(error) = generate() {
        eprintln!("acp-codegen: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[cfg(feature = "generate")]
fn generate() -> Result<(), acp_codegen::Error> {
    use acp_codegen::Builder;

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
#[cfg(feature = "generate")]
fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}
