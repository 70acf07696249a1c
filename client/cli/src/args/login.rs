//! The arguments of `acp login`.

use clap::error::ErrorKind;

use super::agent::AgentArgs;
use super::agents::ListFormat;

#[derive(Debug, clap::Args)]
#[command(override_usage = LOGIN_USAGE, after_long_help = LOGIN_HELP)]
pub(crate) struct LoginArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    /// Use the authentication method with this id [default: the only one, or a menu]
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,

    /// List the agent's authentication methods and exit
    #[arg(long, conflicts_with = "auth")]
    pub(crate) list: bool,

    /// With --list: output format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

impl LoginArgs {
    /// Validates the selected agent.
    ///
    /// # Errors
    ///
    /// Fails when no agent is given, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        self.agent.settle_named(self.name.take())
    }
}

const LOGIN_USAGE: &str = "\
acp login [OPTIONS] NAME
       acp login [OPTIONS] -- AGENT [ARGUMENT]...
       acp login [OPTIONS] --url URL";

const LOGIN_HELP: &str = "\
Methods:
  agent     The agent authenticates by itself, such as on a page in the
            browser. acp waits up to 10 minutes.
  terminal  acp runs the agent's program, or a program that it names, in this
            terminal. Only if acp has a terminal and the agent is a
            local process.

  With --auth METHOD, `acp run` and `acp chat` log in first.

Exit codes:
  0    the agent, or the program in the terminal, reported success
  1    the agent answered with an error
  2    wrong usage; or several methods, and no terminal to choose one
  3    the agent could not be started or reached, or exited too early
  4    the program in the terminal failed, or requires a terminal
  5    the agent did not answer in time
  130  cancelled

Examples:
  acp login codex
  acp login --list -- opencode acp
  acp login --auth chatgpt codex";
