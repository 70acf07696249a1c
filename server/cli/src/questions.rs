//! Who answers permission requests and forms besides the clients: the options of every command that
//! serves.

use std::path::PathBuf;
use std::time::Duration;

use acp_client::Rules;
use acp_server::{OnTimeout, Policies, ServerBuilder};
use acp_server_host::PermissionRules;
use clap::{Args, ValueEnum};

use super::Failure;
use super::allowed_tools::AllowedTools;
use super::usage::usage;

/// Who answers.
#[derive(Clone, Debug, Args)]
pub struct QuestionArgs {
    /// Permission rules in TOML, which decide before any client is asked; see docs/permissions.md
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Seconds in which a permission or a form is to be answered; 0: it waits as long as its turn
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub permission_timeout: u64,
    /// What happens to a turn when nobody has answered in that time: the permission is rejected
    /// once, or the turn is cancelled. A form is cancelled in any case
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Timeout::Reject)]
    pub on_timeout: Timeout,
}

/// What happens when nobody has answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Timeout {
    /// The permission is rejected once
    Reject,
    /// The turn is cancelled
    Cancel,
}

impl QuestionArgs {
    /// Sets rules and time limits, these policies, and the tools that may ask for permission (all).
    ///
    /// # Errors
    ///
    /// Wrong usage, when the file of rules cannot be read or is not valid.
    pub(super) fn apply(
        &self,
        server: ServerBuilder,
        mut policies: Policies,
        allowed_tools: Option<Vec<String>>,
    ) -> Result<ServerBuilder, Failure> {
        let seconds = self.permission_timeout;
        policies.question_timeout = (seconds > 0).then(|| Duration::from_secs(seconds));
        policies.on_timeout = match self.on_timeout {
            Timeout::Reject => OnTimeout::Reject,
            Timeout::Cancel => OnTimeout::Cancel,
        };
        let server = server.policies(policies);
        let rules = match self.rules.as_ref().map(Rules::read).transpose() {
            Ok(rules) => rules.map(PermissionRules::new),
            Err(error) => return usage(error.to_string()),
        };
        Ok(match (allowed_tools, rules) {
            (Some(names), rules) => server.permissions(AllowedTools::new(names, rules)),
            (None, Some(rules)) => server.permissions(rules),
            (None, None) => server,
        })
    }
}
