//! Texts of documents and overlays, read from files.

use std::io;
use std::path::Path;

use crate::Error;

/// Reads the text of a document or an overlay, for [`Document::parse`](acp_schema::Document).
///
/// # Errors
///
/// When the file cannot be read or is not UTF-8; the error names the file.
pub fn read(path: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path, source))?;
    text(path, bytes)
}

/// Reads a document or an overlay from standard input.
///
/// # Errors
///
/// As [`read`], with `standard input` in place of the file.
pub fn read_stdin() -> Result<String, Error> {
    let path = Path::new("standard input");
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes)
        .map_err(|source| Error::io(path, source))?;
    text(path, bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        let reason = format!(
            "not UTF-8 from byte {} on, in line {line}; save it as UTF-8",
            good.len()
        );
        Error::io(path, io::Error::new(io::ErrorKind::InvalidData, reason))
    })
}
