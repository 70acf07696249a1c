//! Replacing a file as a whole.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::fs::{Dir, File, OpenOptions};

use super::access::{self, Rights};
use super::roots::Roots;
use super::walk::End;
use super::{internal, invalid, refused, regular};
use acp_sdk::RpcError;

/// Names that are tried for the new file, should others be taken.
const ATTEMPTS: u32 = 8;

/// Writes a file as a whole: readers see the old text or the new one. Blocks.
///
/// A new file is written beside it, fsynced and renamed. Missing directories are created. An
/// existing file keeps its permission bits, its access list (Linux) and, where the system allows
/// it, owner and group; nobody can read the new text who could not read the old one, at any time.
/// Special bits (setuid and the like) are cleared. A file behind a symbolic link is replaced and
/// the link stays. A hard link keeps the old text.
///
/// A link or special file that takes the place of the file during the call is replaced itself.
///
/// # Errors
///
/// -32602 if the path is refused or names no regular file; -32002 if a file is in the place of a
/// directory; -32603 if the file is marked read-only or cannot be written. The file is unchanged
/// then, and nothing but directories is left over.
pub fn write(roots: &Roots, path: &str, text: &str) -> Result<(), RpcError> {
    let place = roots.writable_place(path)?;
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => refused(path, &error),
        _ => internal(format!("cannot write {path}: {error}")),
    };
    match place.end {
        End::Directory => Err(invalid(format!("{path} is a directory"))),
        End::File(name, metadata) => {
            regular(&metadata, path)?;
            if metadata.permissions().readonly() {
                // Renaming needs rights on the directory only, but the mark is meant.
                return Err(internal(format!("cannot write {path}: it is read-only")));
            }
            let rights = Rights::of(&place.dir, &name, &metadata);
            replace(&place.dir, &name, text.as_bytes(), Some(&rights)).map_err(cannot)
        }
        End::Missing(names) => {
            let (dir, name) = create_directories(place.dir, names).map_err(cannot)?;
            replace(&dir, &name, text.as_bytes(), None).map_err(cannot)
        }
    }
}

/// Creates the directories of a new file; returns the last one and the name of the file.
fn create_directories(mut dir: Arc<Dir>, names: Vec<OsString>) -> io::Result<(Arc<Dir>, OsString)> {
    let mut names = names.into_iter();
    let mut name = names.next().ok_or(io::ErrorKind::InvalidInput)?;
    for next in names {
        match dir.create_dir(&name) {
            Ok(()) => sync(&dir),
            // Somebody else has just created it, or something in its place.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        dir = Arc::new(dir.open_dir(&name)?);
        name = next;
    }
    Ok((dir, name))
}

fn replace(dir: &Dir, name: &OsStr, bytes: &[u8], rights: Option<&Rights>) -> io::Result<()> {
    let new = Temporary::create(dir, rights)?;
    let mut file = &new.file;
    file.write_all(bytes)?;
    file.sync_all()?;
    new.rename(name)?;
    sync(dir);
    Ok(())
}

/// Makes the names of a directory durable. Where a directory cannot be fsynced, the system does it
/// in its own time.
fn sync(dir: &Dir) {
    if let Ok(dir) = dir.open(".") {
        let _ = dir.sync_all();
    }
}

/// A new file, which is removed unless it is renamed.
struct Temporary<'a> {
    dir: &'a Dir,
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    /// Creates an empty file with these rights, or with those of any new file.
    fn create(dir: &'a Dir, rights: Option<&Rights>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Who opens the file now could read from it later.
        #[cfg(unix)]
        if rights.is_some() {
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut attempts = 0;
        let (path, file) = loop {
            let path = unused_name();
            match dir.open_with(&path, &options) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    attempts += 1;
                    if attempts == ATTEMPTS {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let new = Self {
            dir,
            path,
            file,
            renamed: false,
        };
        if let Some(rights) = rights {
            access::give(&new.file, rights)?;
        }
        Ok(new)
    }

    fn rename(mut self, name: &OsStr) -> io::Result<()> {
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

/// A name that hardly anybody else uses; the system refuses one that is taken.
fn unused_name() -> PathBuf {
    let random = RandomState::new().build_hasher().finish();
    PathBuf::from(format!(".acp-{random:016x}"))
}

#[cfg(all(test, unix))]
mod tests {
    use cap_std::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn new_content_is_never_readable_by_more_people_than_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private");
        std::fs::write(&path, "old").unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let name = OsStr::new("private");
        let rights = Rights::of(&dir, name, &dir.symlink_metadata(name).unwrap());
        let new = Temporary::create(&dir, Some(&rights)).unwrap();
        let mode = new.file.metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "before anything is written");
    }

    #[test]
    fn a_file_that_is_not_renamed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        std::fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(replace(&dir, OsStr::new("taken"), b"text", None).is_err());
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "the new file is left over");
    }
}
