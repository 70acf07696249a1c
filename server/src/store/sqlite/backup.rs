//! A copy of a store that servers may be using.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::failure::{self, Failure};
use super::{SqliteStore, file};
use crate::store::{StoreError, StoreErrorKind};

impl SqliteStore {
    /// Copies the store at `path` into a new file, and returns the bytes of the copy.
    ///
    /// The copy is the store at one moment, whoever writes meanwhile; nobody waits for it, and the
    /// store is not changed. It has the version of the store, and the space of deleted sessions is
    /// not copied. The file is readable for this user only. It gets its name when it is complete
    /// and on the disk: until then it is `TARGET.partial-…` in the same folder.
    ///
    /// Blocks for as long as the copy takes.
    ///
    /// # Errors
    ///
    /// - `Conflict`: the target exists.
    /// - `Corrupt`: there is no store at `path`, it is damaged, or of a later version.
    /// - `Full`, `Unavailable`: the store cannot be read, or the target not be written.
    pub fn back_up(path: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<u64, StoreError> {
        let (path, target) = (path.as_ref(), target.as_ref());
        let copied = copy(path, target);
        copied.map_err(|failure| failure.into_error(path))
    }
}

/// The copy before it has its name. Dropped, it is removed.
struct Partial(PathBuf);

impl Partial {
    fn beside(target: &Path) -> Result<Self, StoreError> {
        let random = getrandom::u64();
        let random = random.map_err(|error| failed(target, &io::Error::other(error)))?;
        // Absolute, because SQLite takes a name that begins with `file:` for a URI.
        let path = std::path::absolute(target).map_err(|error| failed(target, &error))?;
        let mut path = path.into_os_string();
        path.push(format!(".partial-{random:016x}"));
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        let created = file::private(options.write(true).create_new(true)).open(&path);
        created.map_err(|error| failed(target, &error))?;
        Ok(Self(path))
    }

    /// Gives the copy its name, unless that is taken.
    fn publish(self, target: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.0)?.sync_all()?;
        // Unlike a rename, a link replaces nothing.
        match fs::hard_link(&self.0, target) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !target.exists() => {
                // A file system without links.
                fs::rename(&self.0, target)?;
            }
            linked => linked?,
        }
        sync_folder(target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // A file that stays has a name that says what it is.
        let _ = fs::remove_file(&self.0);
    }
}

fn copy(path: &Path, target: &Path) -> Result<u64, Failure> {
    let connection = file::open_existing(path)?;
    if target.symlink_metadata().is_ok() {
        return Err(taken(target).into());
    }
    let partial = Partial::beside(target)?;
    let name = partial.0.to_str().ok_or_else(|| {
        let message = format!("the path {} is not Unicode", partial.0.display());
        StoreError::new(StoreErrorKind::Unavailable, message)
    })?;
    // It writes the copy alone, but counts as writing.
    connection.pragma_update(None, "query_only", false)?;
    connection.execute("VACUUM INTO ?1", [name])?;
    let bytes = fs::metadata(&partial.0).map_err(|error| failed(target, &error))?;
    match partial.publish(target) {
        Ok(()) => Ok(bytes.len()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(target).into()),
        Err(error) => Err(failed(target, &error).into()),
    }
}

fn taken(target: &Path) -> StoreError {
    let message = format!(
        "the backup {} exists already. Choose another name",
        target.display()
    );
    StoreError::new(StoreErrorKind::Conflict, message)
}

fn failed(target: &Path, error: &io::Error) -> StoreError {
    let message = format!("cannot write the backup {}: {error}", target.display());
    StoreError::new(failure::kind_of(error), message)
}

/// Makes the name survive a loss of power.
#[cfg(unix)]
fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|path| !path.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
