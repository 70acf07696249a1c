//! Reading and writing text files.
//!
//! Text is passed on exactly: no conversion of line endings, no byte order mark added or removed. A
//! file that is not UTF-8 is refused rather than repaired, because its text may be written back.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use acp_sdk::RpcError;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, Permissions};

use super::roots::Place;
use super::{internal, invalid, refused};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// Reads a file or some of its lines. `line` counts from 1 (0 means 1). Lines end with `\n`, which
/// belongs to them; lines beyond the end are an empty text.
pub(super) fn read(
    place: &Place,
    line: Option<u32>,
    limit: Option<u32>,
    most: usize,
) -> Result<String, RpcError> {
    let named = &place.named;
    let file = open(place)?;
    let skip = line.unwrap_or(1).saturating_sub(1);
    let bytes = read_lines(file, skip, limit, most);
    let bytes = bytes.map_err(|error| internal(format!("cannot read {named}: {error}")))?;
    if bytes.len() > most {
        return Err(internal(format!(
            "{named} has more than {most} bytes to read; read a part of it by `line` and `limit`"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        invalid(format!(
            "{named} is not UTF-8 text (byte {at} of the lines)"
        ))
    })
}

/// Opens a regular file. A pipe or device could block, or do something when it is opened.
fn open(place: &Place) -> Result<File, RpcError> {
    let cannot = |error: &io::Error| refused(&place.named, error);
    let before = place.root.metadata(&place.path);
    regular(&before.map_err(|error| cannot(&error))?, &place.named)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // A pipe that took the place of the file since does not block.
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::custom_flags(&mut options, nonblock());
    let file = place.root.open_with(&place.path, &options);
    let file = file.map_err(|error| cannot(&error))?;
    let opened = file.metadata().map_err(|error| cannot(&error))?;
    regular(&opened, &place.named)?;
    Ok(file)
}

#[cfg(unix)]
fn nonblock() -> i32 {
    // All flags are below 2^31.
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default()
}

fn regular(metadata: &Metadata, named: &str) -> Result<(), RpcError> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = match metadata.is_dir() {
        true => "a directory",
        false => "not a regular file",
    };
    Err(invalid(format!("{named} is {kind}")))
}

/// Reads some lines; at most one byte more than `most`.
fn read_lines(file: File, skip: u32, limit: Option<u32>, most: usize) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    for _ in 0..skip {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(Vec::new());
        }
    }
    let mut bytes = Vec::new();
    let mut reader = reader.take(most as u64 + 1);
    match limit {
        None => {
            reader.read_to_end(&mut bytes)?;
        }
        Some(limit) => {
            for _ in 0..limit {
                if reader.read_until(b'\n', &mut bytes)? == 0 {
                    break;
                }
            }
        }
    }
    Ok(bytes)
}

/// Replaces a file: a new file beside it is written, fsynced and renamed. Permissions are kept.
pub(super) fn write(place: &Place, bytes: &[u8]) -> Result<(), RpcError> {
    let named = &place.named;
    let cannot = |error: io::Error| internal(format!("cannot write {named}: {error}"));
    let before = match place.root.metadata(&place.path) {
        Ok(metadata) => {
            regular(&metadata, named)?;
            Some(metadata.permissions())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(refused(named, &error)),
    };
    if before.as_ref().is_some_and(Permissions::readonly) {
        // Renaming needs rights on the directory only, but the mark is meant.
        return Err(internal(format!("cannot write {named}: it is read-only")));
    }
    let Some(name) = place.path.file_name() else {
        return Err(invalid(format!("{named} is a directory")));
    };
    let parent = directory(place).map_err(cannot)?;
    replace(&parent, Path::new(name), bytes, before).map_err(cannot)
}

/// Opens the directory of a file, and creates it if it does not exist.
fn directory(place: &Place) -> io::Result<Dir> {
    match place.path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            place.root.create_dir_all(parent)?;
            place.root.open_dir(parent)
        }
        _ => place.root.try_clone(),
    }
}

fn replace(dir: &Dir, name: &Path, bytes: &[u8], before: Option<Permissions>) -> io::Result<()> {
    let new = Temporary::create(dir, before)?;
    let mut file = &new.file;
    file.write_all(bytes)?;
    file.sync_all()?;
    new.rename(name)?;
    // The rename itself; where a directory cannot be fsynced, the system does it in its own time.
    if let Ok(dir) = dir.open(".") {
        let _ = dir.sync_all();
    }
    Ok(())
}

/// A new file, which is removed unless it is renamed.
struct Temporary<'a> {
    dir: &'a Dir,
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    /// Creates an empty file with these permissions, or with those of any new file.
    fn create(dir: &'a Dir, permissions: Option<Permissions>) -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let path = PathBuf::from(format!(".acp-{random:016x}"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Who may not read the old content must not read the new one at any time.
        #[cfg(unix)]
        if permissions.is_some() {
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = dir.open_with(&path, &options)?;
        let new = Self {
            dir,
            path,
            file,
            renamed: false,
        };
        if let Some(permissions) = permissions {
            new.file.set_permissions(permissions)?;
        }
        Ok(new)
    }

    fn rename(mut self, name: &Path) -> io::Result<()> {
        self.dir.rename(&self.path, self.dir, name)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // What cannot be removed stays; the error that is reported is the one before.
            let _ = self.dir.remove_file(&self.path);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use cap_std::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_content_is_never_readable_by_more_people_than_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let private = Permissions::from_mode(0o600);
        let new = Temporary::create(&dir, Some(private)).unwrap();
        let mode = new.file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "before anything is written");
    }
}
