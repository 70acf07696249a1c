//! Selects the text of the protocol's types: `generated`, or what is generated now (`generate`).

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Set by cargo-fuzz, and by the models.
    println!("cargo::rustc-check-cfg=cfg(fuzzing, shuttle)");
    // Cargo would otherwise run the script again for any change to the crate.
    println!("cargo::rerun-if-changed=build.rs");
    match generated() {
        Ok(folder) => {
            println!("cargo::rustc-env=ACP_SDK_GENERATED={}", folder.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("acp-sdk: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder with the texts for the features.
#[cfg(not(feature = "generate"))]
fn generated() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let kept = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("generated");
    Ok(match feature("UNSTABLE") {
        true => kept.join("unstable"),
        false => kept,
    })
}

/// Generates the texts for the features into `OUT_DIR`.
#[cfg(feature = "generate")]
fn generated() -> Result<PathBuf, Box<dyn std::error::Error>> {
    use acp_codegen::{Builder, generate_bundled_conversions};

    let folder = PathBuf::from(std::env::var("OUT_DIR")?);
    let version = |mut builder: Builder| {
        if feature("UNSTABLE") {
            builder = builder.unstable();
        }
        if feature("SCHEMARS") {
            builder = builder.json_schemas();
        }
        builder.generate()
    };
    std::fs::write(folder.join("v1.rs"), version(Builder::v1())?)?;
    if feature("V2") {
        std::fs::write(folder.join("v2.rs"), version(Builder::v2())?)?;
        let conversions = generate_bundled_conversions(feature("UNSTABLE"))?;
        std::fs::write(folder.join("convert.rs"), conversions)?;
    }
    Ok(folder)
}

/// Whether a feature of this package is on.
fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}
