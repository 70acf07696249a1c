//! Runs the command and keeps what it says.

use std::ffi::OsStr;
use std::process::{Command, Output};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `acp-conformance` with `args`.
pub(crate) fn acp_conformance<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .args(args)
        .output()
        .expect("the command starts");
    output.into()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
