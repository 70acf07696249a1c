//! Writing a transcript into a folder of the server, which other users of the machine may know.

use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file for the server's user only (mode 0600), in place of an earlier one. Blocks.
///
/// The text goes to a new file, which is renamed: neither step follows a link that somebody has put
/// at the path, and whoever reads the file sees the old text or the new one.
///
/// # Errors
///
/// Those of the file system; nothing new stays behind.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .suffix(".part")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
