//! The arguments of `acp-agent`.

use std::path::PathBuf;

use acp_sandbox::args::SandboxArgs;
use acp_server_cli::Serve;
use clap::{Args as ClapArgs, Parser};

const TRY: &str = r#"Try it without a key:
  acp run "list {}" -- acp-agent --model scripted
With a model: `acp-agent --init`, edit the file, then
  acp chat -- acp-agent
Over HTTP, with a web page: acp-server serve -- acp-agent
In Zed, settings.json:
  "agent_servers": { "acp-agent": { "type": "custom", "command": "acp-agent", "args": [] } }

A prompt of the scripted model that is TOOL {JSON} calls that tool; others are
repeated.

Exit codes: 0 when the client has closed its side, 1 when the store, reading
or writing failed, 2 for wrong usage and a configuration that is not valid."#;

/// A small coding agent of the Agent Client Protocol: answers one client on standard input and output,
/// with a model and tools for files, search and commands.
#[derive(Debug, Parser)]
#[command(name = "acp-agent", version, after_help = TRY)]
// It is for people whose client may have neither files nor terminals.
#[command(mut_arg("local_tools", |tools| tools.default_value("fallback")))]
#[command(mut_arg("allowed_tools", |tools| tools.help("Tools that the agent has, separated by commas; those of \
    MCP servers are SERVER__TOOL")))]
#[command(mut_arg("store", |store| store.help("File that keeps the sessions, or `memory` to forget \
    them at the end [default: acp-agent/sessions.db in the user's data folder]")))]
pub(crate) struct Args {
    /// Write a configuration to be edited, unless there is one, and end
    #[arg(long)]
    pub(crate) init: bool,
    /// Configuration [default: acp-agent/config.toml in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What the agent is.
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Whether it is confined.
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    /// How it is served.
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// What the agent is.
#[derive(Debug, ClapArgs)]
pub(crate) struct AgentArgs {
    /// Role of the configuration: its instructions, tools, model and mode
    #[arg(long, value_name = "TAG")]
    pub(crate) role: Option<String>,
    /// Requests to the model in a turn [default: 100]
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_steps: Option<u32>,
    /// Record what the model is asked and answers in this new file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answer as this recording does, in place of the models
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
}
