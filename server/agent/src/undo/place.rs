//! Paths inside the session's directories.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// Directories that are held open: nothing outside is read or written, whatever links are put there.
#[derive(Debug)]
pub(super) struct Roots(Vec<(PathBuf, Arc<Dir>)>);

/// A name in a directory of the roots, which need not exist.
pub(super) struct Place {
    /// The absolute path without links in its directories: the same for all spellings.
    pub(super) path: PathBuf,
    pub(super) root: Arc<Dir>,
    /// The path below the root.
    pub(super) below: PathBuf,
}

impl Roots {
    pub(super) fn open(
        directories: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> io::Result<Self> {
        let mut roots = Vec::new();
        for directory in directories {
            let path = directory.as_ref().canonicalize()?;
            let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
            roots.push((path, Arc::new(dir)));
        }
        // The outermost wins, so that a path has one place.
        roots.sort_by_key(|(path, _)| path.components().count());
        Ok(Self(roots))
    }

    /// Finds the place of a path. Links in its directories are followed, its own name is not.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub(super) fn place(&self, path: &Path) -> Result<Place, String> {
        if !path.is_absolute() {
            return Err("it is no absolute path".to_owned());
        }
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err("it names no file".to_owned());
        };
        let parent = path.parent().unwrap_or(path);
        let path = resolved(parent)?.join(name);
        let below = |(root, dir): &(PathBuf, Arc<Dir>)| {
            let below = path.strip_prefix(root).ok()?;
            (!below.as_os_str().is_empty()).then(|| (dir.clone(), below.to_owned()))
        };
        match self.0.iter().find_map(below) {
            Some((root, below)) => Ok(Place { path, root, below }),
            None => Err("it is outside of the session's directories".to_owned()),
        }
    }
}

impl Roots {
    /// Finds a place again by its [`path`](Place::path).
    ///
    /// # Errors
    ///
    /// The reason why it is none any more.
    pub(super) fn same_place(&self, path: &str) -> Result<Place, String> {
        let place = self.place(Path::new(path))?;
        match place.path == Path::new(path) {
            true => Ok(place),
            false => Err("a symbolic link is in the place of one of its directories".to_owned()),
        }
    }
}

/// Returns a path without links; it may have an end that does not exist. Blocks.
///
/// # Errors
///
/// The reason why it has none.
pub(crate) fn resolved(path: &Path) -> Result<PathBuf, String> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path;
    loop {
        match existing.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", existing.display())),
        }
        match (existing.components().next_back(), existing.parent()) {
            (Some(Component::Normal(name)), Some(parent)) => {
                missing.push(name.to_owned());
                existing = parent;
            }
            _ => return Err("it has `..` below a directory that does not exist".to_owned()),
        }
    }
}

impl Place {
    /// Returns the directory below the root, and the name in it.
    pub(super) fn divided(&self) -> (&Path, &OsStr) {
        let parent = self.below.parent().unwrap_or(Path::new(""));
        (parent, self.below.file_name().unwrap_or_default())
    }
}
