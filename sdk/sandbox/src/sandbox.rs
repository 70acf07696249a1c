//! A prepared sandbox.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::landlock::Ruleset;
use crate::{Mechanism, SandboxError, SandboxErrorKind, SandboxSettings, bubblewrap};

/// A sandbox whose paths are open and which this machine enforces.
///
/// Clones are the same sandbox. Its temporary directory is removed with the last one.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    enforced_by: EnforcedBy,
    writable: Vec<PathBuf>,
    temporary: TempDir,
}

#[derive(Debug)]
enum EnforcedBy {
    Landlock(Ruleset),
    /// The arguments of `bwrap` before the program.
    Bubblewrap(Vec<OsString>),
}

impl Sandbox {
    pub(crate) fn prepare(settings: &SandboxSettings) -> Result<Self, SandboxError> {
        let temporary = temporary_directory().map_err(|error| {
            let message = format!("cannot create the sandbox's temporary directory: {error}");
            SandboxError::new(SandboxErrorKind::Temporary, message)
        })?;
        let given = settings.writable.iter().map(PathBuf::as_path);
        let writable = given
            .chain([temporary.path()])
            .map(resolved)
            .collect::<Result<Vec<_>, _>>()?;
        let writable = outermost(writable);
        let enforced_by = match settings.mechanism {
            Mechanism::Landlock => {
                EnforcedBy::Landlock(Ruleset::new(&writable, settings.has_network)?)
            }
            Mechanism::Bubblewrap => {
                let arguments = bubblewrap::arguments(&writable, settings.has_network);
                bubblewrap::check(&arguments)?;
                EnforcedBy::Bubblewrap(arguments)
            }
        };
        let inner = Inner {
            enforced_by,
            writable,
            temporary,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns what enforces the sandbox.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        match self.inner.enforced_by {
            EnforcedBy::Landlock(_) => Mechanism::Landlock,
            EnforcedBy::Bubblewrap(_) => Mechanism::Bubblewrap,
        }
    }

    /// Returns the paths that can be written, without links; the temporary directory is one of them.
    pub fn writable_paths(&self) -> impl Iterator<Item = &Path> {
        self.inner.writable.iter().map(PathBuf::as_path)
    }

    /// Returns the variables that a confined process needs: where it keeps temporary files.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let path = self.inner.temporary.path();
        ["TMPDIR", "TMP", "TEMP"]
            .map(|name| (name, path))
            .into_iter()
    }

    /// Returns what is started instead of a program: it, or one that starts it, with the arguments that
    /// stand before those of the program.
    #[must_use]
    pub fn program(&self, program: &OsStr) -> (OsString, Vec<OsString>) {
        match &self.inner.enforced_by {
            EnforcedBy::Landlock(_) => (program.to_owned(), Vec::new()),
            EnforcedBy::Bubblewrap(arguments) => {
                let mut arguments = arguments.clone();
                arguments.push("--".into());
                arguments.push(program.to_owned());
                (bubblewrap::PROGRAM.into(), arguments)
            }
        }
    }

    /// Runs a function whose new processes are confined; for
    /// [`Mechanism::Bubblewrap`], they are if their program is that of [`program`](Self::program).
    ///
    /// The function runs on a thread of its own, which is confined too.
    ///
    /// # Errors
    ///
    /// Those of the function, and if the thread cannot be started or confined.
    pub fn spawn<T: Send>(&self, spawn: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let EnforcedBy::Landlock(ruleset) = &self.inner.enforced_by else {
            return spawn();
        };
        thread::scope(|scope| {
            let confined = || {
                ruleset.confine_thread()?;
                spawn()
            };
            let thread = thread::Builder::new().spawn_scoped(scope, confined)?;
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Says where a confined agent may write.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent may write in ")?;
        for (number, path) in self.writable_paths().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            write!(f, "{separator}{}", path.display())?;
        }
        write!(f, " only ({})", self.mechanism())
    }
}

fn temporary_directory() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("acp-sandbox-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

fn resolved(path: &Path) -> Result<PathBuf, SandboxError> {
    path.canonicalize().map_err(|error| {
        let message = format!("{} cannot be made writable: {error}", path.display());
        SandboxError::new(SandboxErrorKind::Path, message)
    })
}

/// Leaves out the paths below others. What is confined can replace a path below a writable one, so such
/// a path must never be looked up again.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_others_are_left_out() {
        let paths = ["/b/c", "/a", "/b", "/a b", "/a/x/y", "/b/c/d"].map(PathBuf::from);
        let kept = outermost(paths.to_vec());
        assert_eq!(kept, ["/a", "/a b", "/b"].map(PathBuf::from));
    }
}
