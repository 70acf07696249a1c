//! Which process holds a lease: each instance of the store locks a file for as long as it lives.
//!
//! The operating system releases the lock when the process ends, however it ends. So there is no
//! time after which a lease expires, and none to wait for after a crash.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::file;

/// The folder with the lock files of all instances of a store.
#[derive(Debug)]
pub(super) struct Owners {
    folder: PathBuf,
}

/// This instance, alive until dropped.
#[derive(Debug)]
pub(super) struct Owner {
    name: String,
    path: PathBuf,
    /// Locked; closing it releases the lock.
    _lock: File,
}

impl Owners {
    /// Returns the folder beside a database, which it creates.
    pub(super) fn beside(database: &Path) -> io::Result<Self> {
        let owners = Self::of(database);
        file::create_folder(&owners.folder)?;
        Ok(owners)
    }

    /// Returns the folder beside a database, whether or not it exists.
    pub(super) fn of(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push(".owners");
        let folder = PathBuf::from(folder);
        Self { folder }
    }

    /// Registers this instance and removes the files of those that are gone.
    ///
    /// Must not run in two processes at the same time: a file that is not locked yet would look as
    /// if its owner were gone. The caller holds the database's write lock.
    pub(super) fn register(&self) -> io::Result<Owner> {
        for entry in fs::read_dir(&self.folder)? {
            if let Some(name) = entry?.file_name().to_str()
                && let Some(name) = name.strip_suffix(".lock")
            {
                // A file that cannot be inspected is only not removed.
                let _ = self.is_alive(name);
            }
        }
        let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{}-{random:016x}", std::process::id());
        let path = self.path(&name);
        let lock = file::private(OpenOptions::new().write(true).create_new(true)).open(&path)?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Owner {
            name,
            path,
            _lock: lock,
        })
    }

    /// Returns whether an instance is alive. Removes the file of one that is not.
    pub(super) fn is_alive(&self, name: &str) -> io::Result<bool> {
        let is_locked = self.is_locked(name)?;
        if !is_locked {
            // Names are not used twice, so nobody can have locked a new file of this name.
            fs::remove_file(self.path(name)).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        Ok(is_locked)
    }

    /// Returns whether an instance is alive, and leaves its file alone.
    pub(super) fn is_locked(&self, name: &str) -> io::Result<bool> {
        if !is_name(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{name:?} is no owner of a session"),
            ));
        }
        let path = self.path(name);
        let file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            // Closing the file unlocks it.
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.lock"))
    }
}

impl Owner {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A file that stays is removed by the next instance.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the process id in the name of an owner.
pub(super) fn process_of(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

/// Returns whether a text from the database can be part of a path.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    !name.is_empty() && bytes.all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("x.db");
        let owners = Owners::beside(&database).unwrap();
        let (first, second) = (owners.register().unwrap(), owners.register().unwrap());
        assert_ne!(first.name(), second.name());
        assert!(owners.is_alive(first.name()).unwrap());
        let name = first.name().to_owned();
        assert_eq!(process_of(&name), std::process::id().to_string());
        drop(first);
        assert!(!owners.is_alive(&name).unwrap());
        assert!(owners.is_alive(second.name()).unwrap());
    }

    #[test]
    fn files_of_killed_owners_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let owners = Owners::beside(&folder.path().join("x.db")).unwrap();
        for name in ["1-a", "2-b"] {
            fs::write(owners.path(name), "").unwrap();
        }
        assert!(!owners.is_alive("1-a").unwrap());
        assert!(!owners.path("1-a").exists());
        let _owner = owners.register().unwrap();
        assert!(!owners.path("2-b").exists());
        assert_eq!(fs::read_dir(&owners.folder).unwrap().count(), 1);
    }

    #[test]
    fn no_path_comes_out_of_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let owners = Owners::beside(&folder.path().join("x.db")).unwrap();
        for name in ["", "../1-a", "/etc/passwd", "1-a\0"] {
            assert!(owners.is_alive(name).is_err(), "{name:?}");
        }
    }
}
