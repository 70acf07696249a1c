//! Systems without Landlock.

use std::io;
use std::path::PathBuf;

use crate::SandboxError;

#[derive(Debug)]
pub(crate) enum Ruleset {}

impl Ruleset {
    pub(crate) fn new(_: &[PathBuf], _: bool) -> Result<Self, SandboxError> {
        Err(SandboxError::unenforceable(
            "there is no Landlock on this system: run the agent in a container or a virtual machine",
        ))
    }

    pub(crate) fn confine_thread(&self) -> io::Result<()> {
        match *self {}
    }
}
