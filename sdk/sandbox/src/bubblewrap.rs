//! `bwrap`, the program of bubblewrap.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::SandboxError;

pub(crate) const PROGRAM: &str = "bwrap";

/// Sockets of programs that run for the user, such as systemd's.
const USER_SOCKETS: &str = "/run/user";

/// Returns the arguments before `--` and the program.
pub(crate) fn arguments(writable: &[PathBuf], has_network: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(|&word| word.to_owned()));
    // Neither `--new-session`: whoever kills the process group must reach what is confined. Nor
    // `--die-with-parent`: the parent would be the thread that starts the process.
    add(&["--unshare-pid".as_ref(), "--unshare-ipc".as_ref()]);
    if !has_network {
        add(&["--unshare-net".as_ref()]);
    }
    add(&["--ro-bind".as_ref(), "/".as_ref(), "/".as_ref()]);
    add(&["--dev".as_ref(), "/dev".as_ref()]);
    // The terminal of the user, into which text could be typed.
    add(&[
        "--ro-bind".as_ref(),
        "/dev/null".as_ref(),
        "/dev/tty".as_ref(),
    ]);
    add(&["--proc".as_ref(), "/proc".as_ref()]);
    if Path::new(USER_SOCKETS).is_dir() {
        add(&["--tmpfs".as_ref(), USER_SOCKETS.as_ref()]);
    }
    for path in writable {
        add(&["--bind".as_ref(), path.as_ref(), path.as_ref()]);
    }
    arguments
}

/// Starts a program that does nothing with these arguments.
pub(crate) fn check(arguments: &[OsString]) -> Result<(), SandboxError> {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .output();
    let reason = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = "the program bwrap is not found: install the package bubblewrap, or use \
                           landlock";
            return Err(SandboxError::unenforceable(message));
        }
        Err(error) => error.to_string(),
    };
    Err(SandboxError::unenforceable(format!(
        "bubblewrap does not work here ({reason}): permit user namespaces, or use landlock"
    )))
}
