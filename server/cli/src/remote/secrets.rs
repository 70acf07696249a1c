//! Tokens from files and the environment. Arguments would show them to every user of the machine.

use std::env;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use acp_server::internal::TOKEN_VARIABLE as VARIABLE;
use acp_server_remote::Token;

use super::super::Failure;
use super::super::usage::usage;

/// The maximum bytes of a file that are read.
const FILE_BYTES: u64 = 8 << 10;

/// Returns the master token, if one is set. A file comes before the environment.
pub(super) fn master(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    token(file, VARIABLE)
}

fn token(file: Option<&Path>, variable: &str) -> Result<Option<Token>, Failure> {
    if let Some(path) = file {
        return from_file(path).map(Some);
    }
    match env::var(variable) {
        Ok(text) => parse(&text, variable).map(Some),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => usage(format!("{variable} is not text")),
    }
}

/// The environment variable with the secret of all nodes.
const NODES: &str = "ACP_NODE_SECRET";

/// Returns the secret that nodes show each other, if one is set. A file comes before the environment.
pub(super) fn of_nodes(file: Option<&Path>) -> Result<Option<Token>, Failure> {
    token(file, NODES)
}

/// Reads the token of a file.
pub(crate) fn from_file(path: &Path) -> Result<Token, Failure> {
    let mut text = String::new();
    let opened = fs::File::open(path);
    let read = opened.and_then(|file| {
        warn_of_readers(path, &file);
        file.take(FILE_BYTES).read_to_string(&mut text)
    });
    match read {
        Ok(_) => parse(&text, &path.display().to_string()),
        Err(error) => usage(format!(
            "cannot read the token file {}: {error}",
            path.display()
        )),
    }
}

fn parse(text: &str, source: &str) -> Result<Token, Failure> {
    match text.parse() {
        Ok(token) => Ok(token),
        Err(error) => usage(format!("{source}: {error}")),
    }
}

#[cfg(unix)]
fn warn_of_readers(path: &Path, file: &fs::File) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file
        .metadata()
        .map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let path = path.display();
        tracing::warn!("other users can access {path}; `chmod 600 {path}` prevents it");
    }
}

#[cfg(not(unix))]
fn warn_of_readers(_: &Path, _: &fs::File) {}
