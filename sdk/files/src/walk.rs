//! Where a path leads, found one name at a time in open directories.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata};

use super::roots::{Root, Roots};
use super::{internal, invalid, not_found, refused};
use acp_sdk::RpcError;

/// Symbolic links that are followed in one path, as in Linux.
const MAX_LINKS: u32 = 40;

/// The longest path in bytes that systems accept. A longer one could name directories without end,
/// each of which [`write()`](super::write()) would create.
const MAX_PATH: usize = if cfg!(windows) { 32_767 } else { 4096 };

/// Where a path leads.
pub(super) enum Found {
    Inside(Place),
    /// Through a symbolic link to something that does not exist, inside or outside.
    Dangling,
}

/// A place below an open root.
pub(super) struct Place {
    /// The last directory of the path that exists.
    pub(super) dir: Arc<Dir>,
    /// The path of `dir`, without symbolic links.
    path: PathBuf,
    pub(super) end: End,
}

/// What is left of a path behind its last directory.
pub(super) enum End {
    /// Nothing.
    Directory,
    /// Something that is neither a directory nor a symbolic link.
    File(OsString, Box<Metadata>),
    /// Names that do not exist, at least one.
    Missing(Vec<OsString>),
}

impl Place {
    /// Returns the whole path, without symbolic links.
    pub(super) fn path(&self) -> PathBuf {
        let mut path = self.path.clone();
        match &self.end {
            End::Directory => {}
            End::File(name, _) => path.push(name),
            End::Missing(names) => path.extend(names),
        }
        path
    }
}

impl Found {
    /// Resolves a path.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative or leads outside, -32002 if a file is in the place of a
    /// directory, -32603 if the system does not let us look.
    pub(super) fn walk(roots: &Roots, named: &str) -> Result<Self, RpcError> {
        let path = Path::new(named);
        if !path.is_absolute() {
            return Err(invalid(format!("{named:?} is not an absolute path")));
        }
        if named.contains('\0') {
            return Err(invalid(format!("{named:?} contains a NUL byte")));
        }
        if named.len() > MAX_PATH {
            let start: String = named.chars().take(60).collect();
            return Err(internal(format!(
                "cannot use {start}…: the path has more than {MAX_PATH} bytes"
            )));
        }
        let mut walk = Walk {
            roots,
            named,
            at: Position::Outside(PathBuf::new()),
            rest: Vec::new(),
            links: 0,
        };
        walk.enter(path, false);
        let found = walk.run()?;
        // `file/` names a directory, as everywhere.
        match &found {
            Self::Inside(place) if named.ends_with(is_separator) => match place.end {
                End::Directory => Ok(found),
                _ => Err(not_found(named)),
            },
            _ => Ok(found),
        }
    }
}

struct Walk<'a> {
    roots: &'a Roots,
    /// The path as the caller named it, for errors.
    named: &'a str,
    at: Position<'a>,
    /// The steps to go, the last one first.
    rest: Vec<Step>,
    links: u32,
}

enum Position<'a> {
    Inside {
        root: &'a Root,
        dir: Arc<Dir>,
        /// The path of `dir` below the root, without symbolic links.
        below: PathBuf,
    },
    /// A directory outside, without symbolic links. Nothing is opened there.
    Outside(PathBuf),
}

enum Step {
    Parent,
    Name {
        name: OsString,
        /// Whether it comes from the target of a symbolic link.
        linked: bool,
    },
}

impl<'a> Position<'a> {
    fn root(root: &'a Root) -> Self {
        Self::Inside {
            root,
            dir: root.dir.clone(),
            below: PathBuf::new(),
        }
    }
}

impl Walk<'_> {
    /// Continues with a path: that of the caller, or the target of a link.
    fn enter(&mut self, path: &Path, linked: bool) {
        let mut steps = path;
        if path.has_root() || path.is_absolute() {
            match self.roots.lexical(path) {
                Some((root, below)) => {
                    self.at = Position::root(root);
                    steps = below;
                }
                None => {
                    let start = path.components().take_while(is_start);
                    self.at = Position::Outside(start.collect());
                }
            }
        }
        let steps = steps.components().rev().filter_map(|step| match step {
            Component::Normal(name) => Some(Step::Name {
                name: name.to_owned(),
                linked,
            }),
            Component::ParentDir => Some(Step::Parent),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.rest.extend(steps);
    }

    fn run(mut self) -> Result<Found, RpcError> {
        while let Some(step) = self.rest.pop() {
            let end = match step {
                Step::Parent => self.parent()?,
                Step::Name { name, linked } => match self.at {
                    Position::Inside { .. } => self.inside(name, linked)?,
                    Position::Outside(_) => self.outside(name, linked)?,
                },
            };
            if let Some(found) = end {
                return Ok(found);
            }
        }
        self.found(End::Directory)
    }

    fn parent(&mut self) -> Result<Option<Found>, RpcError> {
        match &mut self.at {
            Position::Outside(path) => {
                path.pop();
            }
            Position::Inside { root, dir, below } => {
                if below.pop() {
                    *dir = match below.as_os_str().is_empty() {
                        true => root.dir.clone(),
                        // From the root, because a directory that was moved has another parent.
                        false => {
                            let opened = root.dir.open_dir(&*below);
                            Arc::new(opened.map_err(|error| refused(self.named, &error))?)
                        }
                    };
                } else if let Some(parent) = root.resolved.parent() {
                    self.at = Position::Outside(parent.to_owned());
                }
            }
        }
        Ok(None)
    }

    /// Looks a name up in an open directory.
    fn inside(&mut self, name: OsString, linked: bool) -> Result<Option<Found>, RpcError> {
        let Position::Inside { dir, below, .. } = &mut self.at else {
            return Ok(None);
        };
        let cannot = |error: io::Error| refused(self.named, &error);
        let metadata = match dir.symlink_metadata(&name) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.missing(name, linked).map(Some);
            }
            Err(error) => return Err(cannot(error)),
        };
        if metadata.is_symlink() {
            self.links += 1;
            if self.links > MAX_LINKS {
                let path = self.named;
                return Err(internal(format!(
                    "cannot use {path}: more than {MAX_LINKS} symbolic links"
                )));
            }
            let target = dir.read_link_contents(&name).map_err(cannot)?;
            self.enter(&target, true);
        } else if metadata.is_dir() {
            let opened = dir.open_dir(&name).map_err(cannot)?;
            *dir = Arc::new(opened);
            below.push(name);
        } else if self.rest.is_empty() {
            return self.found(End::File(name, Box::new(metadata))).map(Some);
        } else {
            // Below a file there is nothing.
            return Err(not_found(self.named));
        }
        Ok(None)
    }

    /// Goes on outside of the roots, by path: nothing is opened before a root is reached.
    fn outside(&mut self, name: OsString, linked: bool) -> Result<Option<Found>, RpcError> {
        let Position::Outside(path) = &mut self.at else {
            return Ok(None);
        };
        path.push(&name);
        // A root's name is compared first: it means the open directory, whatever has that name now.
        if let Some((root, below)) = self.roots.lexical(path)
            && below.as_os_str().is_empty()
        {
            self.at = Position::root(root);
            return Ok(None);
        }
        match path.canonicalize() {
            Ok(resolved) => self.enter_resolved(resolved, linked),
            // Whatever the reason is: it is none of the caller's business.
            Err(_) => {
                path.pop();
                return self.missing(name, linked).map(Some);
            }
        }
        Ok(None)
    }

    /// Continues at a path without symbolic links: outside, or in the root that it is below.
    fn enter_resolved(&mut self, resolved: PathBuf, linked: bool) {
        match self.roots.lexical(&resolved) {
            Some(_) => self.enter(&resolved, linked),
            None => self.at = Position::Outside(resolved),
        }
    }

    /// Ends at a name that does not exist.
    fn missing(&mut self, first: OsString, linked: bool) -> Result<Found, RpcError> {
        let mut names = vec![first];
        while let Some(step) = self.rest.pop() {
            match step {
                Step::Name { name, .. } => names.push(name),
                Step::Parent => {
                    let path = self.named;
                    return Err(invalid(format!(
                        "{path} has `..` below a directory that does not exist"
                    )));
                }
            }
        }
        match linked {
            true => Ok(Found::Dangling),
            false => self.found(End::Missing(names)),
        }
    }

    fn found(&self, end: End) -> Result<Found, RpcError> {
        match &self.at {
            Position::Inside { root, dir, below } => Ok(Found::Inside(Place {
                dir: dir.clone(),
                path: match below.as_os_str().is_empty() {
                    true => root.resolved.clone(),
                    false => root.resolved.join(below),
                },
                end,
            })),
            Position::Outside(_) => Err(self.roots.outside(self.named)),
        }
    }
}

/// Whether this is the start of an absolute path.
fn is_start(component: &Component<'_>) -> bool {
    matches!(component, Component::Prefix(_) | Component::RootDir)
}
