//! Directories that are held open, and the names that lead to them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::walk::{End, Found, Place};
use super::{invalid, not_found};
use acp_sdk::RpcError;

/// Directories with everything below them, held open.
///
/// A clone shares the open directories.
#[derive(Clone, Default)]
pub struct Roots(Vec<Root>);

/// One directory.
#[derive(Clone)]
pub(super) struct Root {
    pub(super) dir: Arc<Dir>,
    /// The absolute path that it was added by.
    named: PathBuf,
    /// The same without symbolic links, when it was added.
    pub(super) resolved: PathBuf,
}

impl Roots {
    /// Creates roots without a directory: every path is outside.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens directories.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn open(directories: impl IntoIterator<Item = impl AsRef<Path>>) -> io::Result<Self> {
        let mut roots = Self::new();
        for directory in directories {
            roots.add(directory)?;
        }
        Ok(roots)
    }

    /// Opens another directory. It stays open as long as these roots or a clone of them.
    ///
    /// # Errors
    ///
    /// The system's, if there is no such directory or it cannot be opened.
    pub fn add(&mut self, directory: impl AsRef<Path>) -> io::Result<()> {
        let named = std::path::absolute(directory)?;
        let resolved = named.canonicalize()?;
        let dir = Dir::open_ambient_dir(&resolved, ambient_authority())?;
        let dir = Arc::new(dir);
        self.0.push(Root {
            dir,
            named,
            resolved,
        });
        Ok(())
    }

    /// Adds the directories of other roots, which stay open as long as either.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Returns the directory that was added first.
    #[must_use]
    pub fn first(&self) -> Option<Directory> {
        self.0.first().map(|root| Directory {
            dir: root.dir.clone(),
            path: root.resolved.clone(),
        })
    }

    /// Returns the path without symbolic links of something that exists.
    ///
    /// It is meant for comparing and showing. Somebody who opens it by name can be led elsewhere by
    /// a link that is put there meanwhile.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative or leads out of the roots, -32002 if it does not exist,
    /// -32603 if the system does not let us look.
    pub fn existing(&self, path: &str) -> Result<PathBuf, RpcError> {
        let place = self.existing_place(path)?;
        Ok(place.path())
    }

    /// Returns the path without symbolic links of a file to be written. It need not exist, nor its
    /// directory.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative, leads out of the roots, or goes through a symbolic link
    /// to something that does not exist; -32002 if a file is in the place of a directory; -32603
    /// if the system does not let us look.
    pub fn writable(&self, path: &str) -> Result<PathBuf, RpcError> {
        let place = self.writable_place(path)?;
        Ok(place.path())
    }

    /// Finds the directory that a command starts in.
    ///
    /// # Errors
    ///
    /// As [`existing`](Self::existing); -32602 if it is no directory.
    pub fn directory(&self, path: &str) -> Result<Directory, RpcError> {
        let place = self.existing_place(path)?;
        match place.end {
            End::Directory => Ok(Directory {
                path: place.path(),
                dir: place.dir,
            }),
            _ => Err(invalid(format!("{path} is not a directory"))),
        }
    }

    pub(super) fn existing_place(&self, path: &str) -> Result<Place, RpcError> {
        match Found::walk(self, path)? {
            Found::Inside(place) if !matches!(place.end, End::Missing(_)) => Ok(place),
            _ => Err(not_found(path)),
        }
    }

    pub(super) fn writable_place(&self, path: &str) -> Result<Place, RpcError> {
        match Found::walk(self, path)? {
            Found::Inside(place) => Ok(place),
            Found::Dangling => Err(invalid(format!(
                "{path} goes through a symbolic link to something that does not exist"
            ))),
        }
    }

    /// Returns the root that a path is below by its names alone, and what follows its name. Of
    /// several the innermost.
    pub(super) fn lexical<'a>(&self, path: &'a Path) -> Option<(&Root, &'a Path)> {
        let below = |root: &Root| {
            let resolved = path.strip_prefix(&root.resolved);
            resolved.or_else(|_| path.strip_prefix(&root.named)).ok()
        };
        let found = self.0.iter().filter_map(|root| Some((root, below(root)?)));
        found.min_by_key(|(_, below)| below.components().count())
    }

    /// The error for a path outside.
    pub(super) fn outside(&self, path: &str) -> RpcError {
        let roots: Vec<_> = self
            .0
            .iter()
            .map(|root| root.named.to_string_lossy())
            .collect();
        let roots = match roots.is_empty() {
            true => "none of them exists".to_owned(),
            false => roots.join(", "),
        };
        invalid(format!(
            "{path} is outside of the session's directories ({roots})"
        ))
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|root| &root.named))
            .finish()
    }
}

/// A directory inside of the roots, held open: the working directory of a command.
#[derive(Clone)]
pub struct Directory {
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "no path names it there")
    )]
    dir: Arc<Dir>,
    path: PathBuf,
}

impl Directory {
    /// Returns its path without symbolic links, when it was found.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that a child of this process is started in, while this value exists.
    ///
    /// On Linux it names the open descriptor, so the child starts in this very directory, whatever
    /// has been renamed or replaced since. Elsewhere, and where `/proc` is not mounted, it is
    /// [`path`](Self::path): the system resolves the path again when the child starts, and follows
    /// a link that has been put there meanwhile.
    #[must_use]
    pub fn start_path(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd as _;

            // The child resolves it in its own table of descriptors, which is a copy until it
            // executes the program.
            let descriptor = PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd()));
            if descriptor.is_dir() {
                return descriptor;
            }
        }
        self.path.clone()
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.path).finish()
    }
}
