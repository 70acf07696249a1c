//! The arguments of a sandbox.

use std::path::PathBuf;

use acp_sandbox::Mechanism;

/// Whether the agent is confined, and to what.
#[derive(Debug, Clone, Default, clap::Args)]
#[group(skip)]
pub(in crate::cli) struct SandboxArgs {
    /// Confine the agent: it and its commands write in the session's directory, in the agent's own state
    /// and in a temporary directory only. MECHANISM is landlock (the default) or bubblewrap; `acp doctor`
    /// says what this machine enforces
    #[arg(
        long,
        value_name = "MECHANISM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "landlock",
        conflicts_with = "url"
    )]
    pub(in crate::cli) sandbox: Option<Mechanism>,

    /// With --sandbox: permit writing this file too, or in this directory; repeatable
    #[arg(long, value_name = "PATH", requires = "sandbox")]
    pub(in crate::cli) sandbox_write: Vec<PathBuf>,

    /// With --sandbox=bubblewrap: no network, not even this machine's
    #[arg(long, requires = "sandbox")]
    pub(in crate::cli) sandbox_no_network: bool,
}
