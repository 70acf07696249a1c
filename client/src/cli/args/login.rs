//! The arguments of `acp login`.

use clap::error::ErrorKind;

use super::agent::AgentArgs;
use super::agents::ListFormat;

#[derive(Debug, clap::Args)]
#[command(override_usage = LOGIN_USAGE, after_long_help = LOGIN_HELP)]
pub(in crate::cli) struct LoginArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    pub(in crate::cli) agent: AgentArgs,

    /// Log in by the method of this id [default: the only one, or what you choose]
    #[arg(long, value_name = "METHOD")]
    pub(in crate::cli) auth: Option<String>,

    /// List the methods that the agent offers, and end
    #[arg(long, conflicts_with = "auth")]
    pub(in crate::cli) list: bool,

    /// With --list: what to print
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(in crate::cli) format: ListFormat,
}

impl LoginArgs {
    /// Decides which agent is meant.
    ///
    /// # Errors
    ///
    /// When there is no agent, or more than one.
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
  agent     The agent does it alone, as by a page in the browser. acp waits up to ten minutes.
  terminal  The agent's program, or another one that it names, runs in this terminal and asks there.
            Agents offer such methods only while acp has a terminal, and acp has started them.

  `acp run` and `acp chat` log in before they start with --auth METHOD.

Exit codes:
  0    the agent, or the program in the terminal, reported success
  1    the agent answered with an error
  2    wrong usage; or there are several methods, and no terminal to choose one
  3    the agent could not be started or reached, or ended too early
  4    the program in the terminal failed, or needs a terminal
  5    the agent did not answer in time
  130  cancelled

Examples:
  acp login codex
  acp login --list -- opencode acp
  acp login --auth chatgpt codex";
