//! The working directory of the sessions that the suite opens.
//!
//! It goes with its owner. When this process is killed, the guard removes it, if there is one;
//! a test in Rust has none, and what it leaves behind is removed by the next run on this
//! machine. A lock, which ends with the process, tells what is left behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Error, Result};

const PREFIX: &str = "acp-conformance-";

/// The file in each folder that its owner has locked, beside what the agents see.
const LOCK: &str = "lock";

/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder with a file to read.
#[derive(Debug)]
pub struct Workdir {
    folder: Folder,
    path: PathBuf,
}

/// What keeps a working directory.
#[derive(Debug)]
pub struct Folder {
    /// Removed before the lock goes.
    folder: TempDir,
    _lock: File,
}

impl Workdir {
    /// Makes one.
    pub fn new() -> Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir(), YOUNG));
        Self::within(&std::env::temp_dir()).map_err(Error::Folder)
    }

    fn within(place: &Path) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        #[cfg(unix)]
        crate::orphan_reaper::keep_tidy(folder.path());
        let lock = File::create(folder.path().join(LOCK))?;
        locked(&lock);
        let path = folder.path().join("work");
        std::fs::create_dir(&path)?;
        std::fs::write(path.join("input.txt"), "one\ntwo\nthree\n")?;
        // Resolved, for agents compare it with what their own system calls it.
        let path = path.canonicalize()?;
        let folder = Folder {
            folder,
            _lock: lock,
        };
        Ok(Self { folder, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path beside it, for what the sessions are not to see.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.folder.path().join(name)
    }

    /// The folder, for somebody else to keep.
    pub fn into_folder(self) -> Folder {
        self.folder
    }
}

/// Removes the folders of processes that were killed.
fn sweep(place: &Path, young: Duration) {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    for folder in ours.map(|entry| entry.path()) {
        if is_left(&folder.join(LOCK), young) {
            // Somebody else may be about it, too.
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Whether whoever locked this file is gone.
fn is_left(lock: &Path, young: Duration) -> bool {
    let Ok(lock) = File::open(lock) else {
        return false;
    };
    let made = lock.metadata().and_then(|about| about.modified());
    let age = made.ok().and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age >= young) && locked(&lock)
}

/// Locks a file until it is closed; `false` when somebody else has.
#[cfg(unix)]
fn locked(file: &File) -> bool {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Elsewhere nothing is removed that was not dropped.
#[cfg(not(unix))]
fn locked(_: &File) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("acp-conformance-left");
        let other = place.path().join("other-tool");
        for folder in [&left, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join(LOCK), "").unwrap();
        }
        let without_a_lock = place.path().join("acp-conformance-odd");
        std::fs::create_dir(&without_a_lock).unwrap();
        let mine = Workdir::within(place.path()).unwrap();
        sweep(place.path(), YOUNG);
        assert!(left.exists());
        sweep(place.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(other.exists() && without_a_lock.exists());
        assert!(mine.path().join("input.txt").exists());
        let path = mine.path().to_owned();
        drop(mine);
        assert!(!path.exists());
    }
}
