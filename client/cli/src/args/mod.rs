//! The command-line arguments and help texts.

mod agent;
mod agents;
mod chat;
#[cfg(feature = "proxy")]
mod conduct;
mod control;
mod login;
#[cfg(feature = "mcp")]
mod mcp;
mod record;
mod run;
mod sessions;

pub(super) use self::sessions::{ExportFormat, SessionArgs, SessionsArgs, SessionsCommand};
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory as _, Parser, Subcommand};

#[cfg(feature = "remote")]
pub(super) use self::agent::RemoteArgs;
pub(super) use self::agent::{AgentArgs, Dialect};
pub(super) use self::agents::{AgentsArgs, AgentsCommand, InstallArgs, ListFormat};
pub(super) use self::chat::{ChatArgs, Editing, UndoIn};
#[cfg(feature = "proxy")]
pub(super) use self::conduct::ConductArgs;
pub(super) use self::control::{Named, NamedArgs, PromptArgs};
pub(super) use self::login::LoginArgs;
#[cfg(feature = "mcp")]
pub(super) use self::mcp::McpArgs;
pub(super) use self::record::RecordArgs;
pub(super) use self::run::{Format, Offered, PermissionArgs, RunArgs, SetupArgs};

/// Drives agents that speak the Agent Client Protocol (ACP) from a shell.
#[derive(Debug, Parser)]
#[command(name = "acp", version, after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  acp run 'What is in this directory?' -- opencode acp
  acp chat -- opencode acp

`acp run --help` explains permissions, formats and exit codes.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start an agent, send one prompt, print the answer and exit.
    ///
    /// Prints the agent's text to standard output while it is received. Thoughts, tool calls, plan and
    /// permission answers go to standard error. Files and commands are served inside the working
    /// directory only.
    Run(Box<RunArgs>),

    /// Chat with an agent in this terminal.
    ///
    /// Displays text as Markdown while it is received, and tool calls with status and diffs. One key
    /// answers a permission request.
    Chat(Box<ChatArgs>),

    /// List the configured agents.
    ///
    /// Reads the configuration files of editors and of acp. Other commands accept the names instead of
    /// a command line: `acp run NAME PROMPT`.
    Agents(AgentsArgs),

    /// Log in to an agent by one of its authentication methods.
    ///
    /// The agent stores the credentials; acp does not receive them.
    Login(Box<LoginArgs>),

    /// List, show, fork, delete or export the stored sessions of an agent.
    Sessions(Box<SessionsArgs>),

    /// Say whether a turn runs in a session that another acp uses.
    Status(NamedArgs),

    /// Send a prompt to a session that an `acp chat` uses, and print the answer.
    Prompt(PromptArgs),

    /// Cancel the turn of a session that another acp uses, as Ctrl-C does there.
    Cancel(NamedArgs),

    /// Record the messages between an editor and an agent.
    ///
    /// acp forwards its standard input and output to and from the agent, and writes a transcript.
    Record(RecordArgs),

    /// Put proxies between an editor and an agent: rules, tools, context, an audit.
    ///
    /// acp is the agent for the editor, on standard input and output. It starts the agent and the proxies,
    /// and passes each message through them.
    #[cfg(feature = "proxy")]
    Conduct(ConductArgs),

    /// Connect an agent to an MCP server inside of its connection; agents start this.
    ///
    /// `acp conduct` names this command to an agent, in place of the MCP servers that the editor or a proxy
    /// has in its own process. The environment has the secret that is shown at the address.
    #[cfg(feature = "proxy")]
    McpBridge {
        /// Where the chain listens
        #[arg(value_name = "ADDRESS")]
        address: String,
    },

    /// Offer an agent as a tool to a host of the Model Context Protocol (MCP), on standard input and
    /// output.
    #[cfg(feature = "mcp")]
    Mcp(Box<McpArgs>),

    /// Say what this machine can enforce, by trying it.
    ///
    /// Each line is a sandbox of --sandbox, and whether it works here. Exits with 1 if none does.
    Doctor,

    /// Print the completions of a shell.
    ///
    /// For bash: `acp completions bash > ~/.local/share/bash-completion/completions/acp`. For other
    /// shells, see their manuals.
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },

    /// Print the manual page, or write a page for each command.
    ///
    /// To display it: `acp man | man -l -`.
    Man {
        /// Write the pages of all commands to this directory
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

impl Args {
    /// Parses arguments, the program's name first.
    ///
    /// # Errors
    ///
    /// Fails on wrong usage, and with the text for `--help` and `--version`.
    pub(super) fn parse_from(
        args: impl IntoIterator<Item = OsString>,
    ) -> clap::error::Result<Self> {
        let mut args = Self::try_parse_from(args)?;
        let (name, settled) = match &mut args.command {
            Command::Run(run) => ("run", run.settle()),
            Command::Chat(chat) => ("chat", chat.settle()),
            Command::Login(login) => ("login", login.settle()),
            Command::Sessions(sessions) => ("sessions", sessions.command.settle()),
            Command::Record(record) => ("record", record.agent.settle_local()),
            #[cfg(feature = "proxy")]
            Command::Conduct(conduct) => ("conduct", conduct.settle()),
            #[cfg(feature = "mcp")]
            Command::Mcp(mcp) => ("mcp", mcp.settle()),
            Command::Agents(_)
            | Command::Status(_)
            | Command::Cancel(_)
            | Command::Prompt(_)
            | Command::Doctor
            | Command::Completions { .. }
            | Command::Man { .. } => {
                return Ok(args);
            }
            #[cfg(feature = "proxy")]
            Command::McpBridge { .. } => return Ok(args),
        };
        settled.map_err(|(kind, message)| {
            let mut command = Self::command();
            command.build();
            match command.find_subcommand_mut(name) {
                Some(subcommand) => subcommand.error(kind, message),
                None => command.error(kind, message),
            }
        })?;
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn explanations_fit_a_terminal_of_80_columns() {
        for command in Args::command().get_subcommands() {
            let text = command.get_after_long_help().or(command.get_after_help());
            let text = text.map(ToString::to_string).unwrap_or_default();
            // Examples and JSON stay on a line, so that they can be copied.
            let prose = |line: &&str| !line.starts_with("  acp ") && !line.contains(['"', '|']);
            for line in text.lines().filter(prose) {
                assert!(line.len() <= 80, "{}: {line}", command.get_name());
            }
        }
    }
}
