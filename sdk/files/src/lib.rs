//! Text files inside some directories, for peers that name them by path.
//!
//! [`Roots`] are the directories. [`read`] and [`write()`] serve `fs/read_text_file` and
//! `fs/write_text_file` inside of them, [`Roots::directory`] finds the directory of a command. All
//! functions block: call them where that is allowed, such as in `tokio::task::spawn_blocking`.
//!
//! # Confinement
//!
//! A path is resolved one name at a time. Each name is looked up in a directory that is held open,
//! beginning with that of the root; a symbolic link is read and its target resolved in the same
//! way. What is opened, created or renamed in the end is a single name in the directory that was
//! reached. Links, renames and pipes that are put there meanwhile lead to an error or to another
//! place inside of the roots, never out of them, and no thread blocks.
//!
//! - A root is opened once, by [`Roots::add`], and held open. When its directory is renamed later,
//!   or something else takes its name, paths below its original name still mean that directory.
//! - A root has two names: the one that it was added by, and the one without symbolic links. A path
//!   below either name is resolved below the open directory, without a look at the names before
//!   it. Every other path is resolved from the file system's root, and is refused unless it leads
//!   into a root, as `/elsewhere/../project/file` does.
//! - A directory that is moved out of its root while a call is working in it is used until that
//!   call ends.
//! - A hard link to a file outside is inside.
//! - The process that named the path may have rights of its own. This crate confines paths, not
//!   processes.
//!
//! # Text
//!
//! Text is passed on exactly: no conversion of line endings, no byte order mark added or removed. A
//! file that is not UTF-8 is refused rather than repaired, because its text may be written back.
//!
//! ```
//! use acp_files::Roots;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let path = project.path().join("notes/today");
//! # let path = path.to_str().ok_or("no text")?;
//! let roots = Roots::open([project.path()])?;
//! acp_files::write(&roots, path, "one\ntwo\n")?;
//! assert_eq!(acp_files::read(&roots, path, Some(2), Some(1), 1 << 20)?, "two\n");
//! assert!(acp_files::read(&roots, "/etc/passwd", None, None, 1 << 20).is_err());
//! # Ok(()) }
//! ```

mod access;
mod read;
mod roots;
#[cfg(all(test, unix))]
mod tests;
mod walk;
mod write;

use std::io;

pub use self::read::{lines, read};
pub use self::roots::{Directory, Roots};
pub use self::write::write;
use acp_sdk::{ErrorCode, Json, RpcError};

fn invalid(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INVALID_PARAMS, reason)
}

fn internal(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INTERNAL_ERROR, reason)
}

/// The error for what does not exist; `data.uri` names it.
///
/// Agents read a file before they create it, and some know that it is missing by these words only.
fn not_found(path: &str) -> RpcError {
    let message = format!("Resource not found: {path} (No such file or directory)");
    let error = RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, message);
    error.with_data(Json::from(serde_json::json!({ "uri": path })))
}

/// The error for a path that the system refuses.
fn refused(path: &str, error: &io::Error) -> RpcError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(path),
        io::ErrorKind::InvalidInput => invalid(format!("invalid path {path:?}: {error}")),
        // The error of cap-std, not the system's: a link took the place of a file meanwhile.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => invalid(format!(
            "{path} leads outside of the session's directories: it was changed while it was used"
        )),
        _ => internal(format!("cannot use {path}: {error}")),
    }
}

/// The error for what is no regular file: a pipe or a device could block, or do something when it
/// is opened.
fn regular(metadata: &cap_std::fs::Metadata, path: &str) -> Result<(), RpcError> {
    if metadata.is_file() {
        return Ok(());
    }
    let kind = match metadata.is_dir() {
        true => "a directory",
        false => "not a regular file",
    };
    Err(invalid(format!("{path} is {kind}")))
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
