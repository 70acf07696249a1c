//! Reads files of text with a limit.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads a file of less than `most` bytes; `None` if it does not exist.
pub(super) fn read(file: &Path, most: u64) -> Result<Option<String>, String> {
    match file.metadata() {
        // Reading a named pipe would block.
        Ok(metadata) if !metadata.is_file() => return Err("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(most).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 == most => Err(format!("it has {most} bytes or more")),
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(error.to_string()),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
