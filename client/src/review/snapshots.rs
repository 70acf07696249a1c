//! The states of the files of a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use super::error::ReviewError;
use super::git::Git;

/// Size above which files are left alone, in bytes.
const LARGEST_FILE: u64 = 25 << 20;

/// Maximum number of files in a snapshot.
const MOST_FILES: usize = 200_000;

/// The name of no object.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// The state of the files of a directory at one time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Snapshot(Arc<str>);

/// Whether a file was added, modified or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The file did not exist.
    Added,
    /// The content, the kind or the permission to execute differs.
    Modified,
    /// The file does not exist any more.
    Deleted,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// The path, relative to the directory.
    pub path: PathBuf,
    /// What happened to the file.
    pub kind: ChangeKind,
}

/// A file that no snapshot has, and that is never restored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftAlone {
    /// The path, relative to the directory.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// The result of restoring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The files that were restored, relative to the directory.
    pub restored: Vec<PathBuf>,
    /// The files that were kept, because they were changed by somebody else in the meantime.
    pub kept: Vec<PathBuf>,
}

/// Takes and restores snapshots of the files of a directory. Clones share them.
///
/// Left out are files that `.gitignore` excludes, repositories inside of the directory, the folder `.git`, files above
/// 25 MiB and files that cannot be read; the last three are named by [`take`](Self::take). Nothing outside of the
/// directory is read or written: a link is kept as a link.
#[derive(Debug, Clone)]
pub struct Snapshots(Arc<Mutex<Git>>);

/// An entry of a difference: mode and object, before and after.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    old: (String, String),
    new: (String, String),
}

impl Snapshots {
    /// Prepares snapshots of a directory.
    ///
    /// # Errors
    ///
    /// Fails when the directory or its path cannot be used, or `git` is not installed.
    pub async fn of(directory: impl AsRef<Path>) -> Result<Self, ReviewError> {
        let directory = directory.as_ref();
        let unusable = |reason: String| ReviewError::Directory {
            path: directory.display().to_string(),
            reason,
        };
        let path = tokio::fs::canonicalize(directory).await;
        let path = path.map_err(|error| unusable(error.to_string()))?;
        if !path.is_dir() {
            return Err(unusable("it is not a directory".to_owned()));
        }
        let git = Git::create(path).await?;
        Ok(Self(Arc::new(Mutex::new(git))))
    }

    /// Takes a snapshot. Returns it with the files that were left alone.
    ///
    /// # Errors
    ///
    /// Fails when `git` fails, or there are more than 200,000 files.
    pub async fn take(&self) -> Result<(Snapshot, Vec<LeftAlone>), ReviewError> {
        take(&*self.0.lock().await).await
    }

    /// Returns the files that differ between two snapshots, by path.
    ///
    /// # Errors
    ///
    /// Fails when `git` fails, such as for a snapshot of another directory.
    pub async fn changes(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<FileChange>, ReviewError> {
        let git = self.0.lock().await;
        let entries = difference(&git, from, to).await?;
        let change = |(path, entry): (String, Entry)| FileChange {
            path: path.into(),
            kind: match (is_absent(&entry.old), is_absent(&entry.new)) {
                (true, _) => ChangeKind::Added,
                (_, true) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            },
        };
        Ok(entries.into_iter().map(change).collect())
    }

    /// Returns the content of a file in a snapshot, such as for [`hunks`](super::hunks()); of a link, its
    /// target.
    ///
    /// # Errors
    ///
    /// Fails when the snapshot does not have the file.
    pub async fn content(&self, of: &Snapshot, path: &Path) -> Result<Vec<u8>, ReviewError> {
        let path = path.to_string_lossy();
        let name = format!("{}:{path}", of.0);
        self.0
            .lock()
            .await
            .run(&["cat-file", "blob", &name], b"")
            .await
    }

    /// Changes the files that differ between two snapshots from the state in `from` to that in `to`.
    ///
    /// A file that is not as in `from` was changed by somebody else since, and is kept as it is.
    ///
    /// # Errors
    ///
    /// Fails when `git` fails; then no file was changed.
    pub async fn restore(&self, from: &Snapshot, to: &Snapshot) -> Result<Restored, ReviewError> {
        let git = self.0.lock().await;
        let (current, _) = take(&git).await?;
        let wanted = difference(&git, from, to).await?;
        let since = difference(&git, from, &current).await?;
        let mut result = Restored::default();
        // What goes away comes first, so that a file can stand in the place of a directory.
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        for (path, entry) in wanted {
            match since.get(&path) {
                Some(now) if now.new == entry.new => continue,
                Some(_) => {
                    result.kept.push(path.into());
                    continue;
                }
                None => {}
            }
            let (mode, object) = &entry.new;
            let lines = match is_absent(&entry.new) {
                true => &mut removed,
                false => &mut added,
            };
            lines.extend_from_slice(format!("{mode} {object}\t{path}\0").as_bytes());
            result.restored.push(path.into());
        }
        if result.restored.is_empty() {
            return Ok(result);
        }
        let target = git.index("target");
        let copied = tokio::fs::copy(git.index("index"), &target).await;
        copied.map_err(ReviewError::Folder)?;
        let write = ["update-index", "-z", "--index-info"];
        git.run_with(&target, &write, &[removed, added].concat())
            .await?;
        let tree = text(git.run_with(&target, &["write-tree"], b"").await?);
        // Refuses all of it if a file has changed in this moment.
        let merge = ["read-tree", "-m", "-u", &current.0, &tree];
        git.run(&merge, b"").await?;
        Ok(result)
    }
}

async fn take(git: &Git) -> Result<(Snapshot, Vec<LeftAlone>), ReviewError> {
    let list = ["ls-files", "-z", "-m", "-o", "-d", "--exclude-standard"];
    let list = git.run(&list, b"").await?;
    let paths: BTreeSet<&[u8]> = list.split(|byte| *byte == 0).collect();
    if paths.len() > MOST_FILES {
        return Err(ReviewError::Directory {
            path: git.directory().display().to_string(),
            reason: format!("it has more than {MOST_FILES} files that .gitignore does not exclude"),
        });
    }
    let mut left_alone = Vec::new();
    let (mut removed, mut present) = (Vec::new(), Vec::new());
    for path in paths.into_iter().filter(|path| !path.is_empty()) {
        if is_gone(git.directory(), path) {
            removed.extend_from_slice(format!("0 {NO_OBJECT}\t").as_bytes());
            removed.extend_from_slice(path);
            removed.push(0);
        } else if let Some(reason) = why_left_alone(git.directory(), path) {
            left_alone.push(LeftAlone {
                path: String::from_utf8_lossy(path).into_owned().into(),
                reason,
            });
        } else {
            present.extend_from_slice(path);
            present.push(0);
        }
    }
    if !removed.is_empty() {
        let remove = ["update-index", "-z", "--index-info"];
        git.run(&remove, &removed).await?;
    }
    // A file may be deleted in this moment.
    let add = [
        "update-index",
        "-z",
        "--add",
        "--remove",
        "--replace",
        "--stdin",
    ];
    if !present.is_empty() {
        git.run(&add, &present).await?;
    }
    let tree = text(git.run(&["write-tree"], b"").await?);
    Ok((Snapshot(tree.into()), left_alone))
}

/// Returns whether a file does not exist, or only behind a link in the place of one of its directories.
fn is_gone(directory: &Path, path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else {
        return false;
    };
    let is_link = |path: PathBuf| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink())
    };
    let parents = Path::new(path).ancestors().skip(1);
    let mut inside = parents.filter(|parent| !parent.as_os_str().is_empty());
    inside.any(|parent| is_link(directory.join(parent)))
        || directory.join(path).symlink_metadata().is_err()
}

/// Returns why a file is not kept.
fn why_left_alone(directory: &Path, path: &[u8]) -> Option<String> {
    let Ok(path) = std::str::from_utf8(path) else {
        return Some("its name is not UTF-8".to_owned());
    };
    if path.ends_with('/') {
        return Some("it is a repository of its own".to_owned());
    }
    let path = directory.join(path);
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    if metadata.len() > LARGEST_FILE {
        return Some("it is larger than 25 MiB".to_owned());
    }
    File::open(path).err().map(|error| error.to_string())
}

/// Returns the entries that differ, by path.
async fn difference(
    git: &Git,
    from: &Snapshot,
    to: &Snapshot,
) -> Result<BTreeMap<String, Entry>, ReviewError> {
    let list = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-abbrev",
        &from.0,
        &to.0,
    ];
    let list = text(git.run(&list, b"").await?);
    let mut words = list.split('\0');
    let mut entries = BTreeMap::new();
    // `:oldmode newmode oldobject newobject status`, then the path.
    while let (Some(head), Some(path)) = (words.next(), words.next()) {
        let mut parts = head.trim_start_matches(':').split(' ').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        let (old_mode, new_mode, old, new) = (part(), part(), part(), part());
        let entry = Entry {
            old: (old_mode, old),
            new: (new_mode, new),
        };
        entries.insert(path.to_owned(), entry);
    }
    Ok(entries)
}

fn is_absent((mode, _): &(String, String)) -> bool {
    mode.bytes().all(|digit| digit == b'0')
}

fn text(output: Vec<u8>) -> String {
    let mut text = String::from_utf8_lossy(&output).into_owned();
    text.truncate(text.trim_end_matches('\n').len());
    text
}
