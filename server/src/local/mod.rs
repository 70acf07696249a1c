//! Files and commands on the machine of the agent, for turns whose clients offer neither.
//!
//! The answers are those of a client: the same semantics, limits and error codes. Paths are
//! confined to the session's directories. A command is confined in nothing but the directory that
//! it starts in.
//!
//! Nothing here knows sessions, turns or connections.

mod command;
mod files;
mod group;
mod output;
mod roots;

pub(crate) use command::Command;
pub(crate) use roots::Roots;

use std::io;

use acp_sdk::v1::{ErrorCode, ReadTextFileRequest};
use acp_sdk::{Json, RpcError};

use crate::limits::LocalLimits;

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
    let place = roots.existing(&request.path)?;
    files::read(&place, request.line, request.limit, limits.file_bytes)
}

/// Answers `fs/write_text_file`. Blocks. Readers of the file see the old text or the new one.
/// Missing directories are created.
///
/// # Errors
///
/// -32602 if the path is refused or names no regular file; -32603 if the file cannot be written.
pub(crate) fn write(roots: &Roots, path: &str, text: &str) -> Result<(), RpcError> {
    let place = roots.writable(path)?;
    files::write(&place, text.as_bytes())
}

fn invalid(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INVALID_PARAMS, reason)
}

fn internal(reason: impl Into<String>) -> RpcError {
    RpcError::new(ErrorCode::INTERNAL_ERROR, reason)
}

/// The error for what does not exist; `data.uri` names it.
fn not_found(path: &str) -> RpcError {
    let error = RpcError::new(ErrorCode::RESOURCE_NOT_FOUND, format!("not found: {path}"));
    error.with_data(Json::from(serde_json::json!({ "uri": path })))
}

/// The error for a path that the system refuses.
fn refused(path: &str, error: &io::Error) -> RpcError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(path),
        io::ErrorKind::InvalidInput => invalid(format!("invalid path {path:?}: {error}")),
        _ => internal(format!("cannot use {path}: {error}")),
    }
}
