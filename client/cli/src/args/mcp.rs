//! The arguments of `acp mcp`.

use std::path::PathBuf;

use acp_sandbox::args::SandboxArgs;
use acp_sdk::text::agent_name;
use clap::error::ErrorKind;

use super::agent::AgentArgs;
use super::run::{Offered, seconds};

#[derive(Debug, clap::Args)]
#[command(override_usage = MCP_USAGE, after_long_help = MCP_HELP)]
pub(crate) struct McpArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(id = "configured", value_name = "NAME")]
    configured: Option<String>,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    /// The name of the tool: letters, digits, `_` and `-` [default: the agent's name, or its program]
    #[arg(long, value_name = "NAME", value_parser = tool_name)]
    pub(crate) name: Option<String>,

    /// The description of the tool, for the host's model
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,

    /// Working directory of the sessions [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Apply the permission rules of this file first; see docs/permissions.md
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// Allow everything: tool calls, files and commands [default: reading only]
    #[arg(long, conflicts_with = "deny_all")]
    pub(crate) approve_all: bool,

    /// Reject all that the agent asks for or has acp do, reading included
    #[arg(long)]
    pub(crate) deny_all: bool,

    /// Whether to offer terminals; without them, the agent runs commands itself
    #[arg(long, value_enum, default_value = "yes")]
    pub(crate) terminals: Offered,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Timeout of a call in seconds; a cancelled call returns its output so far
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,

    /// Wait this many seconds after a turn for updates that the agent sends too late, such as 0.1
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) late_updates: Option<std::time::Duration>,

    /// Maximum number of concurrent calls; further calls wait
    #[arg(long, value_name = "CALLS", default_value = "4", value_parser = calls)]
    pub(crate) max_concurrent: usize,

    /// Serve hosts over HTTP at this address, such as 127.0.0.1:0, instead of one on standard input and
    /// output; the URL is printed
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<std::net::SocketAddr>,

    /// With --http: the token that hosts must send, in a file [default: the variable ACP_MCP_TOKEN, or
    /// else a random token, which is printed on standard error]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) http_token_file: Option<PathBuf>,

    /// With --http: require no token, so that every program and every user of this machine can use the
    /// agent
    #[arg(long, requires = "http", conflicts_with = "http_token_file")]
    pub(crate) no_token: bool,

    /// With --http: a name by which hosts reach this machine, if it is not the address
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) http_host: Vec<String>,

    /// Forward the agent's standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

impl McpArgs {
    /// Validates the selected agent.
    ///
    /// # Errors
    ///
    /// Fails when no agent is given, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        let is_named = self.configured.is_some() || self.agent.name.is_some();
        if self.agent.file.is_none() || is_named {
            return self.agent.settle_named(self.configured.take());
        }
        match self.name.is_some() || self.description.is_some() {
            true => {
                let message = "--name and --description are of one tool: name an agent of the file";
                Err((ErrorKind::ArgumentConflict, message.to_owned()))
            }
            false => Ok(()),
        }
    }
}

const MCP_USAGE: &str = "\
acp mcp [OPTIONS] NAME
       acp mcp [OPTIONS] -- AGENT [ARGUMENT]...
       acp mcp [OPTIONS] --url URL
       acp mcp [OPTIONS] --agents FILE [NAME]";

const MCP_HELP: &str = "\
The tool has one argument, `task`. Each call has its own session. The first
call starts the agent; after a crash, the next call restarts it. It is shut
down when the host closes standard input. Its events are reported as progress.
If the host cancels a request, its turn is cancelled.

Permissions:
  acp never asks. By default it allows tool calls that only read (kinds read,
  search and think), reads files for the agent, and rejects everything else:
  other tool calls, writing files, running commands. --rules, --approve-all
  and --deny-all change this. Unless everything is allowed, acp chooses the
  agent's mode in which it asks, and ends a call in which the agent did what
  nobody allowed.

Several agents:
  --agents FILE offers a tool for each table [[agents]] of a file in TOML, or
  for the one of NAME. `acp agents --help` describes the file. The other
  options are those of all of them; a directory is relative to --cwd. `model`,
  `mode` and `options` are refused: a call's session has the agent's own.
    [[agents]]
    name = \"reviewer\"
    description = \"Reviews changes\"
    command = \"opencode acp\"
    directory = \".\"

HTTP:
  --http ADDRESS serves any number of hosts at http://ADDRESS/mcp. Hosts must
  send a token. On a loopback address, acp makes one unless you give yours or
  say --no-token; an address that other machines can reach requires yours. The
  token is sent unencrypted, so use a TLS proxy. Requests from web pages, and
  requests with another Host, are rejected.

Examples:
  acp mcp codex
  acp mcp -- opencode acp
  acp mcp --agents agents.toml --deny-all
  acp mcp --name reviewer --description 'Reviews changes' --cwd ~/project -- codex-acp";

fn tool_name(text: &str) -> Result<String, String> {
    agent_name::check(text).map(|()| text.to_owned())
}

fn calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(calls) if calls > 0 => Ok(calls),
        _ => Err("expected a number from 1 on".to_owned()),
    }
}
