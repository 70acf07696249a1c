//! The options of commands that confine an agent.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{Mechanism, Sandbox, SandboxError, SandboxSettings, prepared_state};

/// Whether an agent is confined, and to what.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub struct SandboxArgs {
    /// Confine the agent: it and its commands write in the working directory, in the agent's own state
    /// and in a temporary directory only. MECHANISM is landlock (the default) or bubblewrap; `acp doctor`
    /// says what this machine enforces
    #[arg(
        long,
        value_name = "MECHANISM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "landlock"
    )]
    pub sandbox: Option<Mechanism>,

    /// With --sandbox: permit writing this file too, or in this directory; repeatable
    #[arg(long, value_name = "PATH", requires = "sandbox")]
    pub sandbox_write: Vec<PathBuf>,

    /// With --sandbox=bubblewrap: no network, not even this machine's
    #[arg(long, requires = "sandbox")]
    pub sandbox_no_network: bool,
}

impl SandboxArgs {
    /// Prepares the sandbox of an agent that works in a directory; `None` without `--sandbox`.
    ///
    /// The words of its command line tell where it keeps its state; `variable` returns the value of one
    /// of its environment variables.
    ///
    /// # Errors
    ///
    /// As [`SandboxSettings::prepare`], and if a directory for the agent's state cannot be created.
    pub fn prepare<'a>(
        &self,
        command: impl IntoIterator<Item = &'a OsStr>,
        variable: impl Fn(&str) -> Option<OsString>,
        directory: &Path,
    ) -> Result<Option<Sandbox>, SandboxError> {
        let Some(mechanism) = self.sandbox else {
            return Ok(None);
        };
        let mut settings = SandboxSettings::new(mechanism).writable(directory);
        let state = prepared_state(command, variable)?;
        for path in state.into_iter().chain(self.sandbox_write.iter().cloned()) {
            settings = settings.writable(path);
        }
        if self.sandbox_no_network {
            settings = settings.without_network();
        }
        settings.prepare().map(Some)
    }
}
