//! Reads files that configure the client.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Reads a regular file of at most `largest` bytes. Blocks.
///
/// # Errors
///
/// The reason, without the path.
pub(crate) fn read(path: &Path, largest: u64) -> Result<String, String> {
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    // Reading a named pipe would block.
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    match file.take(largest + 1).read_to_string(&mut text) {
        Ok(bytes) if bytes as u64 > largest => Err(format!("it has more than {largest} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}
