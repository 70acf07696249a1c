//! Locks of the files that the calls of a turn change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::undo::resolved;

/// The locks of a turn. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileLocks(Arc<Mutex<Locks>>);

/// The locks by path. Only files that a call changes or waits for have one.
#[derive(Debug, Default)]
struct Locks(HashMap<PathBuf, Weak<Mutex<()>>>);

impl FileLocks {
    /// Waits until no other call changes the file. Calls get it in the order in which they ask for it, which is
    /// that of the answer.
    ///
    /// `path` is absolute. Its other spellings and links to it are the same file, as far as this machine has it.
    pub(crate) async fn lock(&self, path: String) -> OwnedMutexGuard<()> {
        // Calls are resolved one after the other, so that none overtakes another.
        let mut locks = self.0.lock().await;
        let as_given = PathBuf::from(&path);
        let file = tokio::task::spawn_blocking(move || resolved(Path::new(&path)));
        // A path that cannot be resolved is that of a file which cannot be written either, or which another
        // machine has.
        let file = file.await.ok().and_then(Result::ok).unwrap_or(as_given);
        let mut locking = Box::pin(locks.of(file).lock_owned());
        // The first poll takes the place in the queue.
        match locking.as_mut().now_or_never() {
            Some(locked) => locked,
            None => {
                drop(locks);
                locking.await
            }
        }
    }
}

impl Locks {
    fn of(&mut self, file: PathBuf) -> Arc<Mutex<()>> {
        self.0.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = self.0.get(&file).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        self.0.insert(file, Arc::downgrade(&lock));
        lock
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_lock_under_all_of_its_paths_until_nobody_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        let mut locks = Locks::default();
        let mut of = |name: &str| locks.of(resolved(&path(name)).unwrap());
        // There is no file yet; it is the same file when there is one.
        let first = of("file");
        std::fs::write(path("file"), "").unwrap();
        let other = of("other");
        assert!(!Arc::ptr_eq(&first, &other));
        for same in ["file", "link", "./file", "folder/../file"] {
            assert!(Arc::ptr_eq(&first, &of(same)), "{same}");
        }
        drop((first, other));
        let _used = of("link");
        assert_eq!(locks.0.len(), 1);
    }
}
