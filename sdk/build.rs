//! Generates the types and traits of the protocol's versions into `OUT_DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Set by cargo-fuzz, and by the models.
    println!("cargo::rustc-check-cfg=cfg(fuzzing, shuttle)");
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

    write(Builder::v1(), "v1.rs")?;
    if feature("V2") {
        write(Builder::v2(), "v2.rs")?;
        acp_codegen::write_conversions_to_out_dir("convert.rs", feature("UNSTABLE"))?;
    }
    Ok(())
}

/// Writes a version with what the features ask for.
#[cfg(feature = "generate")]
fn write(mut builder: acp_codegen::Builder, file: &str) -> Result<(), acp_codegen::Error> {
    if feature("UNSTABLE") {
        builder = builder.unstable();
    }
    if feature("SCHEMARS") {
        builder = builder.json_schemas();
    }
    builder.write_to_out_dir(file)
}

/// Whether a feature of this package is on.
#[cfg(feature = "generate")]
fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}
