//! The arguments of `acp mcp`.

use std::path::PathBuf;

use clap::error::ErrorKind;

use super::agent::AgentArgs;
use super::run::{Offered, seconds};

#[derive(Debug, clap::Args)]
#[command(override_usage = MCP_USAGE, after_long_help = MCP_HELP)]
pub(in crate::cli) struct McpArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(id = "configured", value_name = "NAME")]
    configured: Option<String>,

    #[command(flatten)]
    pub(in crate::cli) agent: AgentArgs,

    /// The name of the tool: letters, digits, `_` and `-` [default: that of the agent, or of its program]
    #[arg(long, value_name = "NAME", value_parser = mcp_name)]
    pub(in crate::cli) name: Option<String>,

    /// What the tool is for, in words for the host's model
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) description: Option<String>,

    /// Where the agent works [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) cwd: Option<PathBuf>,

    /// Decide by the rules in this file first; docs/permissions.md describes it
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) rules: Option<PathBuf>,

    /// Allow whatever the agent asks for [default: only what reads]
    #[arg(long, conflicts_with = "deny_all")]
    pub(in crate::cli) approve_all: bool,

    /// Refuse whatever the agent asks for
    #[arg(long)]
    pub(in crate::cli) deny_all: bool,

    /// Whether to offer terminals; an agent without them runs commands by its own means
    #[arg(long, value_enum, default_value = "yes")]
    pub(in crate::cli) terminals: Offered,

    /// Cancel a call after so many seconds; it then returns what there is so far
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(in crate::cli) timeout: Option<std::time::Duration>,

    /// How many calls run at the same time; others wait
    #[arg(long, value_name = "CALLS", default_value = "4", value_parser = calls)]
    pub(in crate::cli) max_concurrent: usize,

    /// Serve hosts over HTTP at this address, such as 127.0.0.1:0, instead of one on standard input and
    /// output; the URL is printed
    #[cfg(feature = "mcp-http")]
    #[arg(long, value_name = "ADDRESS")]
    pub(in crate::cli) http: Option<std::net::SocketAddr>,

    /// With --http: the token that hosts must send, in a file [default: the variable ACP_MCP_TOKEN]
    #[cfg(feature = "mcp-http")]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(in crate::cli) http_token_file: Option<PathBuf>,

    /// With --http: a name by which hosts reach this machine, if it is not the address
    #[cfg(feature = "mcp-http")]
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(in crate::cli) http_host: Vec<String>,

    /// Pass the agent's standard error on
    #[arg(long, short)]
    pub(in crate::cli) verbose: bool,
}

impl McpArgs {
    /// Decides which agent is meant.
    ///
    /// # Errors
    ///
    /// When there is no agent, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        self.agent.settle_named(self.configured.take())
    }
}

const MCP_USAGE: &str = "\
acp mcp [OPTIONS] NAME
       acp mcp [OPTIONS] -- AGENT [ARGUMENT]...
       acp mcp [OPTIONS] --url URL";

const MCP_HELP: &str = "\
The tool has one argument, `task`. Each call is a session of its own. The agent is started by the
first call, and again when it has died; it is ended when the host closes standard input. What it does
is reported as progress, and a request that the host cancels cancels its turn.

Permissions:
  Nobody is asked. What only reads (kinds read, search and think) is allowed, all else is refused,
  unless --rules, --approve-all or --deny-all says otherwise. As long as nothing more than reading can
  be allowed, acp refuses the agent's requests to write files and to run commands.

HTTP (where acp has its feature `mcp-http`):
  --http ADDRESS serves any number of hosts at http://ADDRESS/mcp. An address that other machines can
  reach needs a token, which is sent unencrypted: put a proxy with TLS before it. Requests of web pages,
  and those for a host that is not named, are refused.

Examples:
  acp mcp codex
  acp mcp -- opencode acp
  acp mcp --name reviewer --description 'Reviews changes' --cwd ~/project -- codex-acp";

fn mcp_name(text: &str) -> Result<String, String> {
    let accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text {
        "" => Err("it is empty".to_owned()),
        text if text.len() > 64 => Err("expected at most 64 characters".to_owned()),
        text if text.chars().all(accepted) => Ok(text.to_owned()),
        _ => Err("expected letters, digits, `_` and `-`".to_owned()),
    }
}

fn calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(calls) if calls > 0 => Ok(calls),
        _ => Err("expected a number from 1 on".to_owned()),
    }
}
