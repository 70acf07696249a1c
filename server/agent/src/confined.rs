//! Files in open directories.

use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::{Dir, File, OpenOptions};

/// Opens a regular file for reading. A pipe or device does not block, and is refused.
///
/// # Errors
///
/// The system's, or [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub(crate) fn open_regular(dir: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;

        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        // All flags are below 2^31.
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let file = dir.open_with(path, &options)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

/// Reads at most one byte more than `most`: a longer result is too long.
pub(crate) fn read_up_to(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
