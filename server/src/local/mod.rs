//! Files and commands on the machine of the agent, for turns whose clients offer neither.
//!
//! The answers are those of a client: the same semantics, limits and error codes. Paths are
//! confined to the session's directories. A command is confined in nothing but the directory that
//! it starts in.
//!
//! Nothing here knows sessions, turns or connections.

mod command;
mod group;
mod output;

pub(crate) use command::Command;

use std::path::PathBuf;

use acp_files::Directory;
use acp_sdk::RpcError;
use acp_sdk::v1::{ErrorCode, ReadTextFileRequest};

use crate::limits::LocalLimits;

/// The directories of a session.
///
/// They are opened for each call, for a server has many sessions that are idle, and descriptors are
/// few. From then on a directory that is renamed or replaced does not matter to the call.
#[derive(Clone, Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Creates the roots. One that does not exist contains nothing.
    pub(crate) fn new(directories: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self(directories.into_iter().map(Into::into).collect())
    }

    /// Finds the directory that a command starts in. Blocks.
    ///
    /// # Errors
    ///
    /// -32602 for a path that is relative, leads out of the roots or names no directory, -32002 if
    /// it does not exist.
    fn directory(&self, path: &str) -> Result<Directory, RpcError> {
        self.open().directory(path)
    }

    fn open(&self) -> acp_files::Roots {
        let mut roots = acp_files::Roots::new();
        for directory in &self.0 {
            // One that cannot be opened contains nothing.
            let _ = roots.add(directory);
        }
        roots
    }
}

/// Answers `fs/read_text_file`. Blocks.
///
/// # Errors
///
/// -32002 if there is no such file; -32602 if the path is refused, or the file is no regular file
/// or no UTF-8 text; -32603 if it cannot be read or the text is longer than
/// [`LocalLimits::file_bytes`].
pub(crate) fn read(
    roots: &Roots,
    request: &ReadTextFileRequest,
    limits: &LocalLimits,
) -> Result<String, RpcError> {
    let (path, most) = (&request.path, limits.file_bytes);
    acp_files::read(&roots.open(), path, request.line, request.limit, most)
}

/// Answers `fs/write_text_file`. Blocks. Readers of the file see the old text or the new one.
/// Missing directories are created.
///
/// # Errors
///
/// -32602 if the path is refused or names no regular file; -32002 if a file is in the place of a
/// directory; -32603 if the file cannot be written.
pub(crate) fn write(roots: &Roots, path: &str, text: &str) -> Result<(), RpcError> {
    acp_files::write(&roots.open(), path, text)
}

fn invalid(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INVALID_PARAMS, reason)
}

fn internal(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INTERNAL_ERROR, reason)
}
