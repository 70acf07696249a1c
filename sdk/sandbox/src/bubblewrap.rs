//! `bwrap`, the program of bubblewrap.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::SandboxError;

pub(crate) const PROGRAM: &str = "bwrap";

/// Sockets of programs that run for the user, such as systemd's.
const USER_SOCKETS: &str = "/run/user";

/// Returns the arguments before `--` and the program.
pub(crate) fn arguments(writable: &[PathBuf], has_network: bool) -> Vec<OsString> {
    // Neither `--new-session`: whoever kills the process group must reach what is confined. Nor
    // `--die-with-parent`: the parent would be the thread that starts the process.
    let mut words = vec!["--unshare-pid", "--unshare-ipc"];
    if !has_network {
        words.push("--unshare-net");
    }
    words.extend(["--ro-bind", "/", "/", "--dev", "/dev"]);
    // The terminal of the user, into which text could be typed.
    words.extend(["--ro-bind", "/dev/null", "/dev/tty"]);
    words.extend(["--proc", "/proc"]);
    if Path::new(USER_SOCKETS).is_dir() {
        words.extend(["--tmpfs", USER_SOCKETS]);
    }
    let mut arguments: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    for path in writable {
        arguments.extend(["--bind".into(), path.into(), path.into()]);
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
