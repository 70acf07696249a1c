//! Which paths an agent may name.
//!
//! A path is judged by where it leads once every symbolic link is followed, and
//! what is used afterwards is that resolved path. This keeps an agent from leaving
//! its directories by mistake or by a crafted link. It is no sandbox: an agent is a
//! process with the user's rights, and can race these checks if it wants to.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use acp_sdk::v1::{Error as RpcError, ErrorCode};
use acp_sdk::{HandlerError, HandlerResult, Json};

/// Directories with all that is below them.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    /// Resolved; the first is where commands run.
    dirs: Vec<PathBuf>,
}

impl Roots {
    /// # Errors
    ///
    /// When `dir` does not exist or is no directory.
    pub(crate) fn new(dir: &Path) -> io::Result<Self> {
        let mut roots = Self { dirs: Vec::new() };
        roots.add(dir)?;
        Ok(roots)
    }

    /// # Errors
    ///
    /// When `dir` does not exist or is no directory.
    pub(crate) fn add(&mut self, dir: &Path) -> io::Result<()> {
        let dir = dir.canonicalize()?;
        if !dir.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.dirs.push(dir);
        Ok(())
    }

    /// Where commands run that name no directory.
    pub(crate) fn first(&self) -> &Path {
        self.dirs.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Resolves the path of something that exists; `pointer` is where the params name it.
    ///
    /// # Errors
    ///
    /// `-32602` for a path that is relative or leads out of the roots, `-32002` if nothing
    /// is there.
    pub(crate) fn existing(&self, path: &str, pointer: &str) -> HandlerResult<PathBuf> {
        let absolute = absolute(path, pointer)?;
        match absolute.canonicalize() {
            Ok(resolved) => self.inside(resolved, path, pointer),
            Err(error) => Err(unusable(path, pointer, &error)),
        }
    }

    /// Resolves the path of a file to be written, which need not exist, nor its directory.
    ///
    /// # Errors
    ///
    /// `-32602` for a path that is relative or leads out of the roots.
    pub(crate) fn writable(&self, path: &str, pointer: &str) -> HandlerResult<PathBuf> {
        let mut existing = absolute(path, pointer)?;
        let mut missing: Vec<OsString> = Vec::new();
        let resolved = loop {
            match existing.canonicalize() {
                Ok(resolved) => break resolved,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(path, pointer, &error)),
            }
            if existing.is_symlink() {
                let reason = format!("{path} goes through a symbolic link that leads nowhere");
                return Err(HandlerError::invalid_params(pointer, reason));
            }
            // Below a directory that does not exist, `..` has no meaning.
            let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
                let reason = format!("{path} has `..` below a directory that does not exist");
                return Err(HandlerError::invalid_params(pointer, reason));
            };
            missing.push(name.to_owned());
            existing = parent.to_owned();
        };
        let mut resolved = self.inside(resolved, path, pointer)?;
        resolved.extend(missing.iter().rev());
        Ok(resolved)
    }

    fn inside(&self, resolved: PathBuf, path: &str, pointer: &str) -> HandlerResult<PathBuf> {
        if self.dirs.iter().any(|dir| resolved.starts_with(dir)) {
            return Ok(resolved);
        }
        let roots: Vec<_> = self.dirs.iter().map(|dir| dir.to_string_lossy()).collect();
        let reason = format!("{path} is outside of the workspace ({})", roots.join(", "));
        Err(HandlerError::invalid_params(pointer, reason))
    }
}

/// The error for something that is not there; `data.uri` names it.
pub(super) fn not_found(path: &str) -> HandlerError {
    let error = RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, format!("not found: {path}"));
    error
        .with_data(Json::from(serde_json::json!({ "uri": path })))
        .into()
}

/// The error for a path that the system does not let us use.
pub(super) fn unusable(path: &str, pointer: &str, error: &io::Error) -> HandlerError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(path),
        io::ErrorKind::InvalidInput => HandlerError::invalid_params(pointer, error),
        _ => HandlerError::internal(format!("cannot use {path}: {error}")),
    }
}

fn absolute(path: &str, pointer: &str) -> HandlerResult<PathBuf> {
    let absolute = PathBuf::from(path);
    if absolute.is_absolute() {
        return Ok(absolute);
    }
    let reason = format!("{path:?} is not an absolute path");
    Err(HandlerError::invalid_params(pointer, reason))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A workspace `in` beside a directory `out` that it must not reach.
    struct Case {
        dir: tempfile::TempDir,
        roots: Roots,
    }

    impl Case {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("in/sub")).unwrap();
            fs::create_dir_all(dir.path().join("out")).unwrap();
            fs::write(dir.path().join("in/file"), "").unwrap();
            fs::write(dir.path().join("out/secret"), "").unwrap();
            let roots = Roots::new(&dir.path().join("in")).unwrap();
            Self { dir, roots }
        }

        fn path(&self, path: &str) -> String {
            self.dir.path().join(path).to_str().unwrap().to_owned()
        }

        fn link(&self, from: &str, to: &str) {
            symlink(self.path(to), self.path(from)).unwrap();
        }

        fn existing(&self, path: &str) -> HandlerResult<PathBuf> {
            self.roots.existing(&self.path(path), "/path")
        }

        fn writable(&self, path: &str) -> HandlerResult<PathBuf> {
            self.roots.writable(&self.path(path), "/path")
        }

        fn real(&self, path: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(path)
        }
    }

    #[track_caller]
    fn refused(result: HandlerResult<PathBuf>, words: &str) {
        let error = result.expect_err("the path was let through");
        assert_eq!(error.code(), ErrorCode::INVALID_PARAMS, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn what_is_inside_is_resolved() {
        let case = Case::new();
        case.link("in/link", "in/sub");
        assert_eq!(case.existing("in/file").unwrap(), case.real("in/file"));
        assert_eq!(
            case.existing("in/sub/../file").unwrap(),
            case.real("in/file")
        );
        assert_eq!(case.existing("in").unwrap(), case.real("in"));
        assert_eq!(case.writable("in/file").unwrap(), case.real("in/file"));
        assert_eq!(
            case.writable("in/link/a/b").unwrap(),
            case.real("in/sub/a/b")
        );
    }

    #[test]
    fn what_is_outside_is_refused() {
        let case = Case::new();
        for path in ["out/secret", "in/../out/secret", "in/sub/../../out/secret"] {
            refused(case.existing(path), "outside of the workspace");
            refused(case.writable(path), "outside of the workspace");
        }
        refused(case.writable("out/new"), "outside of the workspace");
        refused(case.writable("in/../new"), "outside of the workspace");
        // A name that begins like the root's is not below it.
        fs::create_dir(case.dir.path().join("inside")).unwrap();
        refused(case.writable("inside/new"), "outside of the workspace");
    }

    #[test]
    fn links_that_lead_outside_are_refused() {
        let case = Case::new();
        case.link("in/file-link", "out/secret");
        case.link("in/dir-link", "out");
        case.link("in/twice", "in/dir-link");
        for path in ["in/file-link", "in/dir-link/secret", "in/twice/secret"] {
            refused(case.existing(path), "outside of the workspace");
            refused(case.writable(path), "outside of the workspace");
        }
        refused(case.writable("in/dir-link/new"), "outside of the workspace");
        refused(
            case.writable("in/twice/a/b/new"),
            "outside of the workspace",
        );
    }

    #[test]
    fn links_that_lead_nowhere_are_not_written_through() {
        let case = Case::new();
        case.link("in/dangling", "out/new");
        refused(case.writable("in/dangling"), "leads nowhere");
        refused(case.writable("in/dangling/below"), "leads nowhere");
        assert_eq!(
            case.existing("in/dangling").unwrap_err().code(),
            ErrorCode::RESOURCE_NOT_FOUND
        );
    }

    #[test]
    fn dots_below_what_does_not_exist_are_refused() {
        let case = Case::new();
        refused(case.writable("in/missing/../file"), "`..`");
        refused(case.writable("in/missing/../../out/secret"), "`..`");
    }

    #[test]
    fn relative_and_impossible_paths_are_refused() {
        let case = Case::new();
        refused(case.roots.existing("file", "/path"), "not an absolute path");
        refused(case.roots.writable("", "/path"), "not an absolute path");
        refused(case.existing("in/a\0b"), "NUL byte");
        refused(case.writable("in/a\0b"), "NUL byte");
    }

    #[test]
    fn what_is_missing_is_named() {
        let case = Case::new();
        let path = case.path("in/missing");
        let error = case.existing("in/missing").unwrap_err();
        assert_eq!(error.code(), ErrorCode::RESOURCE_NOT_FOUND);
        let data = error.as_response().data.as_ref().unwrap();
        assert_eq!(data.to_value().unwrap(), serde_json::json!({ "uri": path }));
        // A file in the place of a directory means that nothing is there either.
        let error = case.existing("in/file/below").unwrap_err();
        assert_eq!(error.code(), ErrorCode::RESOURCE_NOT_FOUND);
    }

    #[test]
    fn several_roots_are_one_workspace() {
        let mut case = Case::new();
        case.roots.add(&case.dir.path().join("out")).unwrap();
        assert!(case.existing("out/secret").is_ok());
        assert!(case.roots.add(&case.dir.path().join("in/file")).is_err());
        assert_eq!(case.roots.first(), case.real("in"));
    }
}
