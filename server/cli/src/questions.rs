//! Who answers permission requests and forms besides the clients: the options of every command that
//! serves.

use std::path::PathBuf;
use std::time::Duration;

use acp_client::Rules;
use acp_sdk::v1::{RequestPermissionOutcome, RequestPermissionRequest};
use acp_server::{
    BoxFuture, DecidePermissions, DecidedPermission, OnTimeout, Policies, ServerBuilder, Session,
};
use acp_server_host::{PermissionRules, ProjectRules};
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
    /// Folder of rules that remember, for each working directory, what was answered with "always". Commands of
    /// agents set it; `--rules` goes before it.
    #[arg(skip)]
    pub project_rules: Option<PathBuf>,
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
    /// Sets rules and time limits, these policies, and the tools that may ask for permission (all). With a
    /// file of rules, nothing is remembered.
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
        let mut deciders = Deciders::default();
        deciders.extend(allowed_tools.map(AllowedTools::new));
        deciders.extend(rules);
        // What a file of rules leaves to people, nothing that was remembered decides.
        let of_projects = self.project_rules.as_ref().filter(|_| self.rules.is_none());
        deciders.extend(of_projects.map(ProjectRules::new));
        Ok(match deciders.0.is_empty() {
            true => server,
            false => server.permissions(deciders),
        })
    }
}

/// Decides as the first one that decides.
#[derive(Default)]
struct Deciders(Vec<Box<dyn DecidePermissions>>);

impl Deciders {
    fn extend<D: DecidePermissions>(&mut self, decider: Option<D>) {
        self.0.extend(decider.map(|decider| Box::new(decider) as _));
    }
}

impl DecidePermissions for Deciders {
    fn decide<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
    ) -> BoxFuture<'a, Option<DecidedPermission>> {
        Box::pin(async move {
            for decider in &self.0 {
                let decided = decider.decide(session, request).await;
                if decided.is_some() {
                    return decided;
                }
            }
            None
        })
    }

    fn answered<'a>(
        &'a self,
        session: &'a Session,
        request: &'a RequestPermissionRequest,
        outcome: &'a RequestPermissionOutcome,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for decider in &self.0 {
                decider.answered(session, request, outcome).await;
            }
        })
    }
}
