//! Writing a transcript into a folder of the server, which other users of the machine may know.

use std::fs::{self, File, OpenOptions};
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
    let name = acp_server::internal::connection_id().map_err(io::Error::other)?;
    let new = path.with_file_name(format!(".{name}.part"));
    let written = create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        fs::rename(&new, path)
    });
    if written.is_err() {
        // It may not exist; the first error is the one that says why.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Fails if anything has this path, even a link without a target.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
