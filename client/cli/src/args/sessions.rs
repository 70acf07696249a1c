//! The arguments of `acp sessions`.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Subcommand, ValueEnum};

use super::agent::AgentArgs;
use super::agents::ListFormat;

#[derive(Debug, clap::Args)]
#[command(after_long_help = SESSIONS_HELP)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the agent's sessions, up to 10,000.
    #[command(override_usage = LIST_USAGE)]
    List {
        /// A configured agent; `acp agents` lists them
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// List only sessions with this working directory
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,

        /// Output format
        #[arg(long, value_enum, default_value_t = ListFormat::Text)]
        format: ListFormat,

        #[command(flatten)]
        agent: AgentArgs,
    },

    /// Show a session's directory, title, last activity and history length.
    Show {
        #[command(flatten)]
        session: SessionArgs,

        /// Output format
        #[arg(long, value_enum, default_value_t = ListFormat::Text)]
        format: ListFormat,
    },

    /// Fork a session with its history, and print the id of the copy.
    Fork(SessionArgs),

    /// Delete a session with its history and its name, without confirmation.
    Delete(SessionArgs),

    /// Print the history of a session.
    Export {
        #[command(flatten)]
        session: SessionArgs,

        /// Output format
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
}

/// A session of an agent.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct SessionArgs {
    /// The session's name, as given by --session in this directory, or its id; after the NAME of a
    /// configured agent, unless the agent is given by an option
    #[arg(value_name = "SESSION")]
    pub(crate) id: String,

    #[arg(value_name = "SESSION", hide = true)]
    second: Option<String>,

    /// The session's directory [default: as the agent lists it, or the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

/// The format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Markdown
    Markdown,
    /// One JSON object per line: the session, then each update, unchanged
    Json,
}

impl SessionsCommand {
    /// Validates the selected agent and session.
    ///
    /// # Errors
    ///
    /// Fails when no agent is given, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        match self {
            Self::List { agent, name, .. } => agent.settle_named(name.take()),
            Self::Show { session, .. } | Self::Export { session, .. } => session.settle(),
            Self::Fork(session) | Self::Delete(session) => session.settle(),
        }
    }
}

impl SessionArgs {
    fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        let agent = self
            .second
            .take()
            .map(|session| std::mem::replace(&mut self.id, session));
        self.agent.settle_named(agent)
    }
}

const LIST_USAGE: &str = "\
acp sessions list [OPTIONS] NAME
       acp sessions list [OPTIONS] -- AGENT [ARGUMENT]...
       acp sessions list [OPTIONS] --url URL";

const SESSIONS_HELP: &str = "\
SESSION is a name from `acp run --session` with the same agent and directory
(--cwd), or else an id. The agent's NAME precedes it: `acp sessions show
codex fix`.

acp starts the agent, sends the request and shuts it down. The agent must
support the method:
  list    session/list
  show    session/list or session/load
  fork    session/fork, a proposal that few agents support
  delete  session/delete
  export  session/load, which replays the history; some agents omit tool calls

Exit codes:
  0    done
  1    the agent answered with an error, or lacks the capability; or the
       output cannot be written
  2    wrong usage
  3    the agent could not be started or reached, or exited too early
  4    the agent requires authentication
  5    the agent did not answer in time
  130  cancelled

Examples:
  acp sessions list -- opencode acp
  acp sessions export codex SESSION > session.md
  acp sessions export --format json SESSION -- acp-server | jq -c 'select(.update)'";
