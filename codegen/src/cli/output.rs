//! Writing of results: all or nothing.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use acp_codegen::Error;

/// Writes `text` to `path`, or to standard output.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), Error> {
    let result = match path {
        Some(path) => replace(path, text),
        None => match std::io::stdout().lock().write_all(text.as_bytes()) {
            // The reader, such as `head`, has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        },
    };
    let path = path.unwrap_or(Path::new("standard output"));
    result.map_err(|source| Error::Io {
        path: path.into(),
        source,
    })
}

/// Replaces a file atomically, by renaming a temporary one beside it. Pipes, devices and links
/// are written to directly.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return std::fs::write(path, text),
        _ => {}
    }
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let reason = format!(
            "there is no directory {}; make it first",
            directory.display()
        );
        return Err(std::io::Error::new(ErrorKind::NotFound, reason));
    }
    let mut beside = name.to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // What is left is ours, and the error that counts is the first.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Writes several files into a directory, which is made if it is not there.
pub(crate) fn write_all(directory: &Path, files: &[(String, String)]) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|source| {
        let source = match directory.exists() {
            true => std::io::Error::new(source.kind(), "it is no directory; name another one"),
            false => source,
        };
        let path = directory.into();
        Error::Io { path, source }
    })?;
    let write = |(name, text): &(String, String)| write(Some(&directory.join(name)), text);
    files.iter().try_for_each(write)
}
