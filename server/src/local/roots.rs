//! Which paths may be used, and how they are opened.
//!
//! A path is checked by where it leads once all symbolic links are followed. What is opened is that
//! resolved path, below the descriptor of its root: a link that is put there between the check and
//! the use leads to an error, never out of the root.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use acp_sdk::RpcError;
use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::{invalid, not_found, refused};

/// Directories with everything below them.
#[derive(Clone, Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

/// A path below an open root.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: Dir,
    /// Relative to the root, and without symbolic links when it was resolved.
    pub(super) path: PathBuf,
    /// The path as the caller named it, for errors.
    pub(super) named: String,
}

impl Roots {
    /// Creates the roots. One that does not exist contains nothing.
    pub(crate) fn new(directories: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self(directories.into_iter().map(Into::into).collect())
    }

    /// Resolves the path of something that exists. Blocks.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative or leads out of the roots, -32002 if it does not exist.
    pub(super) fn existing(&self, path: &str) -> Result<Place, RpcError> {
        let found = Found::walk(path)?;
        let place = self.place(&found, path)?;
        match found.missing.is_empty() && !found.dangling {
            true => Ok(place),
            false => Err(not_found(path)),
        }
    }

    /// Resolves the path of a file to be written, which need not exist, nor its directory. Blocks.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative, leads out of the roots or to a dangling link.
    pub(super) fn writable(&self, path: &str) -> Result<Place, RpcError> {
        let found = Found::walk(path)?;
        let place = self.place(&found, path)?;
        match found.dangling {
            true => Err(invalid(format!(
                "{path} goes through a symbolic link to something that does not exist"
            ))),
            false => Ok(place),
        }
    }

    /// Resolves the directory that a command starts in. Blocks.
    ///
    /// # Errors
    ///
    /// As [`existing`](Self::existing); -32602 if it is no directory.
    pub(super) fn directory(&self, path: &str) -> Result<PathBuf, RpcError> {
        self.existing(path)?;
        let resolved = Path::new(path).canonicalize();
        let resolved = resolved.map_err(|error| refused(path, &error))?;
        match resolved.is_dir() {
            true => Ok(resolved),
            false => Err(invalid(format!("{path} is not a directory"))),
        }
    }

    fn place(&self, found: &Found, named: &str) -> Result<Place, RpcError> {
        for root in &self.0 {
            let Ok(root) = root.canonicalize() else {
                continue;
            };
            let Ok(below) = found.existing.strip_prefix(&root) else {
                continue;
            };
            let mut path = below.to_owned();
            path.extend(found.missing.iter().rev());
            if path.as_os_str().is_empty() {
                path.push(".");
            }
            let opened = Dir::open_ambient_dir(&root, ambient_authority());
            return Ok(Place {
                root: opened.map_err(|error| refused(named, &error))?,
                path,
                named: named.to_owned(),
            });
        }
        let roots: Vec<_> = self.0.iter().map(|root| root.to_string_lossy()).collect();
        Err(invalid(format!(
            "{named} is outside of the session's directories ({})",
            roots.join(", ")
        )))
    }
}

/// Where a path leads.
struct Found {
    /// The part that exists, with all links followed.
    existing: PathBuf,
    /// The names below it that do not, the last one first.
    missing: Vec<OsString>,
    /// Whether the first missing name is a link to something that does not exist.
    dangling: bool,
}

impl Found {
    fn walk(path: &str) -> Result<Self, RpcError> {
        let mut existing = PathBuf::from(path);
        if !existing.is_absolute() {
            return Err(invalid(format!("{path:?} is not an absolute path")));
        }
        let mut missing = Vec::new();
        let mut dangling = false;
        loop {
            match existing.canonicalize() {
                Ok(existing) => {
                    return Ok(Self {
                        existing,
                        missing,
                        dangling,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A file in the place of a directory: its own path tells whether it is inside.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => return Err(refused(path, &error)),
            }
            dangling |= existing.is_symlink();
            // Below a directory that does not exist, `..` has no meaning.
            let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
                let reason = format!("{path} has `..` below a directory that does not exist");
                return Err(invalid(reason));
            };
            missing.push(name.to_owned());
            existing = parent.to_owned();
        }
    }
}
