//! The file of the rules, which no call may change: the agent would allow itself everything.

use std::path::{Path, PathBuf};

use acp_sdk::v1::ToolKind;

use super::call::Call;
use super::matching::Match;
use super::path::{CallPath, fold};
use super::{RulesError, file, glob};

/// The file from which rules were read.
#[derive(Debug, Clone)]
pub(super) struct OwnFile {
    /// The absolute path, as the program named it.
    path: PathBuf,
    /// All paths that must not be changed: the file, its target if it is a link, and the lock.
    paths: Vec<PathBuf>,
}

impl OwnFile {
    /// Resolves the path of a rule file. Blocks for as long as the file system takes.
    pub(super) fn new(path: &Path) -> Result<Self, RulesError> {
        let failed = |error: std::io::Error| RulesError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let absolute = std::path::absolute(path).map_err(failed)?;
        let real = path.canonicalize().map_err(failed)?;
        let paths = vec![fold(&absolute), file::lock_path(&real), real];
        Ok(Self {
            path: absolute,
            paths,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file, or the link to it, is in a directory.
    pub(super) fn is_inside(&self, directory: &Path) -> bool {
        let real = directory.canonicalize().ok();
        let absolute = std::path::absolute(directory).ok();
        let directories = [real, absolute.as_deref().map(fold)];
        let mut directories = directories.iter().flatten();
        directories.any(|directory| self.paths.iter().any(|path| path.starts_with(directory)))
    }

    /// Returns whether a call whose links were followed names the file. `Unclear` if it may change it.
    ///
    /// A call that names the file is not allowed whatever its kind, because kinds come from the agent.
    pub(super) fn matches(&self, call: &Call) -> Match {
        let is_file = |path: &CallPath| {
            path.readings()
                .any(|reading| self.paths.iter().any(|path| same(reading, path)))
        };
        if call.paths.iter().chain(&call.more_paths).any(is_file) {
            return Match::Yes;
        }
        let unclear = match &call.kind {
            Some(
                ToolKind::Read
                | ToolKind::Search
                | ToolKind::Think
                | ToolKind::Fetch
                | ToolKind::SwitchMode,
            ) => false,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) if call.says_nothing() => true,
            Some(ToolKind::Edit | ToolKind::Execute) => {
                call.has_unclear_path || self.may_be_in(&call.globs)
            }
            _ => {
                let mut paths = call.paths.iter();
                call.has_unclear_path
                    || self.may_be_in(&call.globs)
                    || paths.any(|path| !path.is_file() && self.is_below(path))
            }
        };
        Match::unclear_if(unclear)
    }

    fn may_be_in(&self, globs: &[CallPath]) -> bool {
        let mut globs = globs.iter();
        globs.any(|path| {
            path.glob_readings().any(|reading| {
                let names = glob::names(reading);
                let mut paths = self.paths.iter();
                paths.any(|path| glob::intersect(&names, &glob::literal_names(path)))
            })
        })
    }

    fn is_below(&self, directory: &CallPath) -> bool {
        directory.readings().any(|reading| {
            let count = reading.components().count();
            let mut paths = self.paths.iter();
            paths.any(|path| {
                let parent: PathBuf = path.components().take(count).collect();
                same(reading, &parent)
            })
        })
    }
}

/// Returns whether two paths are equal on a file system that ignores the case of letters.
fn same(a: &Path, b: &Path) -> bool {
    a.as_os_str().eq_ignore_ascii_case(b.as_os_str())
}
