//! The entry point for build scripts.

use std::fs;
use std::path::{Path, PathBuf};

use acp_schema::{Document, V1_UNSTABLE};

use crate::{Error, Options, generate};

/// Generates from the bundled document and overlays of your own, in `build.rs`.
#[derive(Clone, Debug)]
pub struct Builder {
    unstable: bool,
    overlays: Vec<PathBuf>,
}

impl Builder {
    /// Starts with the bundled document of protocol version 1.
    #[must_use]
    pub fn v1() -> Self {
        Self {
            unstable: false,
            overlays: Vec::new(),
        }
    }

    /// Adds the proposals that the version does not contain yet. They may change or
    /// go with any release.
    #[must_use]
    pub fn unstable(mut self) -> Self {
        self.unstable = true;
        self
    }

    /// Adds an overlay: a schema document whose definitions, methods and patches
    /// are added. Relative paths start at the package, as in any build script.
    #[must_use]
    pub fn overlay(mut self, path: impl Into<PathBuf>) -> Self {
        self.overlays.push(path.into());
        self
    }

    /// Generates the text of one module.
    ///
    /// # Errors
    /// When an overlay cannot be read or applied, or generation fails.
    pub fn generate(&self) -> Result<String, Error> {
        let mut document = Document::v1()?;
        if self.unstable {
            document = document.overlay("v1.unstable.json", V1_UNSTABLE)?;
        }
        for path in &self.overlays {
            let text = fs::read_to_string(path).map_err(|source| Error::Io {
                path: path.clone(),
                source,
            })?;
            document = document.overlay(&path.display().to_string(), &text)?;
        }
        Ok(generate(&document, &Options::v1())?.text)
    }

    /// Generates into `file` in the build script's `OUT_DIR` and tells Cargo which
    /// files the result depends on. Include it with
    /// `include!(concat!(env!("OUT_DIR"), "/file"))`.
    ///
    /// # Errors
    /// As [`Self::generate`], and when the file cannot be written or there is no
    /// `OUT_DIR`.
    #[allow(clippy::print_stdout, reason = "Cargo reads a build script's stdout")]
    pub fn write_to_out_dir(&self, file: &str) -> Result<(), Error> {
        println!("cargo::rerun-if-changed=build.rs");
        for path in &self.overlays {
            println!("cargo::rerun-if-changed={}", path.display());
        }
        let text = self.generate()?;
        let directory = std::env::var_os("OUT_DIR").ok_or_else(|| Error::Io {
            path: PathBuf::from("OUT_DIR"),
            source: std::io::Error::other("not set; call this from a build script"),
        })?;
        let path = Path::new(&directory).join(file);
        fs::write(&path, text).map_err(|source| Error::Io { path, source })
    }
}
