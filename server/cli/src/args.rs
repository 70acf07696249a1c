//! The arguments of `acp-server`.

use std::path::PathBuf;

use acp_reference_agent::HELP;
use clap::{Args as ClapArgs, Parser, Subcommand};

use super::log::LogArgs;
use super::stdio::Serve;
use super::store::StoreArgs;

/// How to try it, after the words.
const TRY: &str = r#"Try it with a client:
  acp run "tool" -- acp-server
or by hand, one message a line; the answer to session/new has the id
for session/prompt:
  {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
  {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}
  {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":PROMPT}
where PROMPT is {"sessionId":"ID","prompt":[{"type":"text","text":"plan"}]}
In Zed, settings.json:
  "agent_servers": { "Reference": { "type": "custom", "command": "acp-server", "args": [] } }

Exit codes: 0 when the client has closed its side, 1 when the store, reading
or writing failed or the client did not read the last output, 2 for wrong
usage. SIGTERM closes the connection: turns are cancelled and answered.
Messages for people go to standard error."#;

/// The reference agent of the Agent Client Protocol: serves one client on standard input and
/// output, deterministically, without a model or a network, until the client closes its side.
#[derive(Debug, Parser)]
#[command(version, after_help = format!("{HELP}\n\n{TRY}"))]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// What to do instead of serving
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to serve.
    #[command(flatten)]
    pub serve: Serve,
}

impl Args {
    /// Returns what is logged; `None` for commands that answer whoever calls them.
    pub(super) fn log(&self) -> Option<&LogArgs> {
        match &self.command {
            None => Some(&self.serve.log),
            Some(Command::Host(host)) => Some(&host.serve.log),
            Some(Command::Serve(serve)) => Some(&serve.log),
            Some(_) => None,
        }
    }
}

/// What to do instead of serving.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists, shows, exports, forks or deletes the sessions of a store; backs it up and checks it
    #[command(mut_arg("store", |store| store.global(true)))]
    Sessions(Sessions),
    /// Serves another agent of standard input and output, with a store of its own
    Host(Box<super::hosted::Host>),
    /// Serves HTTP, server-sent events and WebSocket
    Serve(Box<super::remote::args::RemoteServe>),
    /// Adds, lists or revokes named tokens
    Tokens(super::tokens::Tokens),
    /// Lists the servers of this user
    Status,
    /// Stops servers of this user
    Stop(super::remote::args::Stop),
    /// Lists the servers that share a database, and how many sessions each has open
    Nodes(StoreArgs),
    /// Sends a prompt to a server, and writes the answer
    Prompt(Box<super::prompt::Prompt>),
}

/// Lists, shows, exports, forks or deletes sessions; backs up and checks their store.
#[derive(Debug, ClapArgs)]
pub struct Sessions {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: SessionsCommand,
}

/// What to do with sessions. SESSION is an id or a name.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// Lists sessions, the latest activity first
    List {
        /// Only those that work in this directory
        #[arg(long, value_name = "DIRECTORY")]
        cwd: Option<String>,
        /// With turns, tokens and cost, for which all events are read
        #[arg(long)]
        usage: bool,
        /// A JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Shows a session without its events: settings, times, tokens and cost
    Show {
        /// An id or a name
        session: String,
        /// A JSON object
        #[arg(long)]
        json: bool,
    },
    /// Lists the turns of a session: start, duration, stop reason, tokens and cost
    Turns {
        /// An id or a name
        session: String,
        /// A JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Writes the conversation of a session
    Export {
        /// An id or a name
        session: String,
        /// All events, a JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Copies a session and prints the new id
    Fork {
        /// An id or a name
        session: String,
        /// Number of the last event to copy [default: the last one]
        #[arg(long, value_name = "NUMBER")]
        at: Option<u64>,
    },
    /// Removes a session and its events
    Delete {
        /// An id or a name
        session: String,
    },
    /// Copies the store into a new file, while servers use it
    Backup {
        /// The copy. It gets this name when it is complete; an existing file is not replaced
        file: PathBuf,
    },
    /// Checks the store: database, numbers of events, and which sessions are open. Changes nothing;
    /// exit code 1 if something is wrong
    Check,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_needs_a_client_that_names_none() {
        let parsed = |arguments: &[&str]| {
            let arguments = [&["acp-server"], arguments].concat();
            Args::try_parse_from(arguments).map_err(|error| error.to_string())
        };
        let error = parsed(&["--cwd", "/w"]).unwrap_err();
        assert!(error.contains("--dialect <NAME>"), "{error}");
        assert!(parsed(&["--cwd", "/w", "--dialect", "auto"]).is_ok());
        let error = parsed(&["serve", "--cwd", "/w"]).unwrap_err();
        assert!(error.contains("unexpected argument '--cwd'"), "{error}");
    }
}
