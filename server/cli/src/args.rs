//! The arguments of `acp-server`.

use std::path::PathBuf;

use acp_reference_agent::HELP;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::keep::KeepArgs;
use super::log::LogArgs;
use super::questions::QuestionArgs;
use super::settings::SettingsArgs;
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

/// How to serve.
#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// What is kept in it.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Protocol of the client, if it is not ACP: that of another system, or `auto`, which detects it by
    /// the first message
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["name", "resume", "resume_recent"])]
    pub dialect: Option<Dialect>,
    /// Working directory of sessions whose client names none, and from which relative ones start [default:
    /// that of the process]. Clients of ACP name one, so it needs --dialect
    #[arg(long, value_name = "DIRECTORY", requires = "dialect")]
    pub cwd: Option<PathBuf>,
    /// Tools that may ask for permission, such as `Read,Grep,Bash`, in any case. A tool without a name has that
    /// of its kind, such as `execute`. What others ask for is rejected; tools that do not ask are not affected
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub allowed_tools: Option<Vec<String>>,
    /// Name of the session that the first session/new creates
    #[arg(long, short, value_name = "NAME", conflicts_with_all = ["resume", "resume_recent"])]
    pub name: Option<String>,
    /// Name of the session that the first session/new opens again
    #[arg(long, short, value_name = "NAME", conflicts_with = "resume_recent")]
    pub resume: Option<String>,
    /// The first session/new opens the most recent session of its directory again
    #[arg(long)]
    pub resume_recent: bool,
    /// Seconds that the client may leave output unread after it has closed its side; then the
    /// rest is lost, and the exit code is 1
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub drain_timeout: u64,
    /// Seconds for the agent to end a cancelled turn by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub cancel_deadline: u64,
    /// Prompts that wait behind the running one; further ones are refused
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub queued_prompts: usize,
    /// Who reads and writes files and runs commands when the client offers none of it: nobody
    /// (`off`), or this machine (`fallback`), files inside the session's directories only
    #[arg(long, value_name = "WHO", value_enum, default_value_t = LocalTools::Off)]
    pub local_tools: LocalTools,
    /// Every event is on the disk before the client is sent it, not only at the end of a turn
    #[arg(long)]
    pub sync_every_event: bool,
    /// Who answers questions besides the client.
    #[command(flatten)]
    pub questions: QuestionArgs,
    /// What new sessions begin with.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// The log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The protocol of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// That of the first message
    Auto,
    /// Chimera's ACP client
    Chimera,
    /// OpenOxide's ACP server, with `Content-Length` headers
    #[value(name = "openoxide")]
    OpenOxide,
    /// Otter's ACP server
    OtterAcp,
    /// The JSON-RPC methods of Otter's HTTP server
    OtterHttpAcp,
}

impl Dialect {
    /// Returns the protocol of another system; `None` for ACP. May wait for the first message.
    pub(super) async fn chosen(self) -> acp_sdk::Result<Option<acp_server_dialects::Dialect>> {
        Ok(Some(match self {
            Self::Auto => return acp_server_dialects::detect_stdio().await,
            Self::Chimera => acp_server_dialects::Dialect::Chimera,
            Self::OpenOxide => acp_server_dialects::Dialect::OpenOxide,
            Self::OtterAcp => acp_server_dialects::Dialect::OtterAcp,
            Self::OtterHttpAcp => acp_server_dialects::Dialect::OtterHttpAcp,
        }))
    }
}

/// Who serves files and terminals that the client does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocalTools {
    /// Nobody: the agent says in words what it cannot do
    Off,
    /// The machine of the agent
    Fallback,
}

impl From<LocalTools> for acp_server::LocalTools {
    fn from(tools: LocalTools) -> Self {
        match tools {
            LocalTools::Off => Self::Off,
            LocalTools::Fallback => Self::Fallback,
        }
    }
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
