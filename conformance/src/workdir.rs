//! The working directory of the sessions that the suite opens.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Error, Result};

/// A folder with a file to read, which goes with its owner; when this process is killed, the
/// guard removes it.
#[derive(Debug)]
pub(crate) struct Workdir {
    folder: TempDir,
    path: PathBuf,
}

impl Workdir {
    /// Makes one.
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("acp-conformance-")
            .tempdir()
            .map_err(Error::Folder)?;
        #[cfg(unix)]
        crate::guard::keep_tidy(folder.path());
        // Resolved, for agents compare it with what their own system calls it.
        let path = folder.path().canonicalize().map_err(Error::Folder)?;
        std::fs::write(path.join("input.txt"), "one\ntwo\nthree\n").map_err(Error::Folder)?;
        Ok(Self { folder, path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder, for somebody else to keep.
    pub(crate) fn into_folder(self) -> TempDir {
        self.folder
    }
}
