//! The error of a snapshot.

use std::io;

/// The error of a snapshot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The program `git` cannot be run.
    #[error("cannot run git, which snapshots need: {0}")]
    Git(#[source] io::Error),
    /// A command of `git` failed.
    #[error("git {command} failed: {reason}")]
    Failed {
        /// The name of the command.
        command: String,
        /// What it said.
        reason: String,
    },
    /// The directory cannot be used.
    #[error("cannot take snapshots of {path}: {reason}")]
    Directory {
        /// The directory.
        path: String,
        /// The cause.
        reason: String,
    },
    /// The temporary folder of the snapshots cannot be used.
    #[error("cannot use the temporary folder of the snapshots: {0}")]
    Folder(#[source] io::Error),
}
