//! Unpacks the archive of an agent: a compressed tar file, a zip file, or a program alone.
//!
//! Archives are untrusted. Names must stay inside the folder: `..`, absolute paths, links of any kind and
//! duplicate names are rejected. In a new folder without links, no name leads outside. Sizes and numbers
//! are bounded independent of the headers.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::MultiGzDecoder;

/// Maximum unpacked size, in bytes.
const LARGEST: u64 = 4 << 30;

/// Maximum number of files and folders in an archive.
const MOST_FILES: usize = 200_000;

/// Maximum number of bytes between the contents of two files, which contain the names.
const LONGEST_HEADER: u64 = 1 << 20;

/// Bytes between two checks for cancellation.
const PIECE: usize = 64 << 10;

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    TarGz,
    Zip,
    /// The program itself, not an archive.
    Plain,
}

impl Form {
    /// Returns the format by the extension of a URL or file name.
    ///
    /// # Errors
    ///
    /// Fails with the extension if the format is not supported.
    pub(super) fn of(name: &str) -> Result<Self, String> {
        let path = name.split(['?', '#']).next().unwrap_or_default();
        let file = path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let ends = |extensions: &[&'static str]| {
            let mut extensions = extensions.iter();
            extensions
                .find(|extension| file.ends_with(**extension))
                .copied()
        };
        if ends(&[".tar.gz", ".tgz"]).is_some() {
            return Ok(Self::TarGz);
        }
        if ends(&[".zip"]).is_some() {
            return Ok(Self::Zip);
        }
        let others = [
            ".tar", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".7z", ".dmg", ".deb",
            ".rpm",
        ];
        match ends(&others) {
            Some(extension) => Err(format!(
                "archives of the form {extension} cannot be unpacked"
            )),
            None => Ok(Self::Plain),
        }
    }
}

/// The folder that is being filled.
struct Target<'a> {
    folder: &'a Path,
    /// The number of bytes that may still be written.
    left: u64,
    files: usize,
    stop: &'a AtomicBool,
}

/// Unpacks an archive into an empty folder. `program` is the file name of a plain program.
///
/// # Errors
///
/// Fails with the defect of the archive, or when `stop` is set. The folder then contains a part of
/// it.
pub(super) fn unpack(
    archive: File,
    form: Form,
    folder: &Path,
    program: &Path,
    stop: &AtomicBool,
) -> Result<(), String> {
    let mut target = Target {
        folder,
        left: LARGEST,
        files: 0,
        stop,
    };
    match form {
        Form::TarGz => target.tar(archive),
        Form::Zip => target.zip(archive),
        Form::Plain => target.file(program, &mut &archive, true),
    }
}

impl Target<'_> {
    fn tar(&mut self, archive: File) -> Result<(), String> {
        let left = Rc::new(Cell::new(0));
        let metered = Metered {
            inner: MultiGzDecoder::new(io::BufReader::new(archive)),
            left: left.clone(),
        };
        let mut archive = tar::Archive::new(metered);
        let mut entries = archive.entries().map_err(broken)?;
        loop {
            left.set(LONGEST_HEADER);
            let Some(entry) = entries.next() else { break };
            let mut entry = entry.map_err(broken)?;
            left.set(LARGEST);
            let path = entry.path().map_err(broken)?.into_owned();
            let kind = entry.header().entry_type();
            if kind.is_pax_global_extensions() {
                continue;
            }
            if kind.is_dir() {
                self.folder(&path)?;
            } else if kind.is_file() {
                let mode = entry.header().mode().unwrap_or_default();
                self.file(&path, &mut entry, mode & 0o111 != 0)?;
            } else {
                let name = path.display();
                return Err(format!(
                    "{name:?} in the archive is a link or a special file"
                ));
            }
        }
        // The data after the last file contains a checksum of the whole archive.
        left.set(LARGEST);
        let rest = archive.into_inner().take(self.left);
        self.copy(rest, &mut io::sink())
    }

    fn zip(&mut self, archive: File) -> Result<(), String> {
        let mut archive = zip::ZipArchive::new(archive).map_err(broken)?;
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).map_err(broken)?;
            let path = PathBuf::from(&*file.name().map_err(broken)?);
            let mode = file.unix_mode().unwrap_or_default();
            let kind = mode & 0o170_000;
            if file.is_dir() {
                self.folder(&path)?;
            } else if file.is_symlink() || !matches!(kind, 0 | 0o100_000) {
                let name = path.display();
                return Err(format!(
                    "{name:?} in the archive is a link or a special file"
                ));
            } else {
                self.file(&path, &mut file, mode & 0o111 != 0)?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path) -> Result<(), String> {
        self.count()?;
        let path = inside(path)?;
        std::fs::create_dir_all(self.folder.join(path)).map_err(|error| cannot_write(path, &error))
    }

    fn file(
        &mut self,
        path: &Path,
        content: &mut impl Read,
        executable: bool,
    ) -> Result<(), String> {
        self.count()?;
        let path = inside(path)?;
        let at = self.folder.join(path);
        let create = || {
            std::fs::create_dir_all(at.parent().unwrap_or(self.folder))?;
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            {
                use std::os::unix::fs::OpenOptionsExt as _;
                options.mode(if executable { 0o755 } else { 0o644 });
            }
            options.open(&at)
        };
        let _ = executable;
        let mut file = create().map_err(|error| cannot_write(path, &error))?;
        self.copy(content, &mut file)?;
        file.sync_all().map_err(|error| cannot_write(path, &error))
    }

    fn copy(&mut self, mut from: impl Read, to: &mut dyn io::Write) -> Result<(), String> {
        let mut piece = vec![0; PIECE];
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err("it was stopped".to_owned());
            }
            let length = match from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(error)),
            };
            let left = self.left.checked_sub(length as u64);
            self.left = left.ok_or_else(|| format!("the archive has more than {LARGEST} bytes"))?;
            let piece = piece.get(..length).unwrap_or_default();
            to.write_all(piece)
                .map_err(|error| format!("cannot write a file of it: {error}"))?;
        }
    }

    fn count(&mut self) -> Result<(), String> {
        self.files += 1;
        match self.files > MOST_FILES {
            true => Err(format!("the archive has more than {MOST_FILES} files")),
            false => Ok(()),
        }
    }
}

/// Limits the bytes that are read, because names are read into memory at the length that the header
/// states.
struct Metered<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(length as u64);
        self.left
            .set(left.ok_or_else(|| io::Error::other("a header is too long"))?);
        Ok(length)
    }
}

/// Returns a path that stays below any folder that it is joined to.
///
/// # Errors
///
/// Fails when it does not.
pub(super) fn inside(path: &Path) -> Result<&Path, String> {
    let harmless = |component: Component<'_>| match component {
        // Windows interprets `a:b` as a stream of a file, or as a drive.
        Component::Normal(name) => !cfg!(windows) || !name.to_string_lossy().contains(':'),
        Component::CurDir => true,
        _ => false,
    };
    let is_file = path
        .components()
        .any(|component| matches!(component, Component::Normal(_)));
    let is_here = path.components().all(harmless);
    // `./` is the folder itself.
    match is_here && (is_file || path.components().next().is_some()) {
        true => Ok(path),
        false => Err(format!(
            "the name {:?} leads out of the folder of the agent",
            path.display()
        )),
    }
}

fn broken(error: impl std::fmt::Display) -> String {
    format!("the archive is broken: {error}")
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{path:?} is in the archive twice"),
        _ => format!("cannot write {path:?}: {error}"),
    }
}
