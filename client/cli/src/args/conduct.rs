//! The arguments of `acp conduct`.

use std::path::PathBuf;

use clap::error::ErrorKind;

use super::agent::AgentArgs;

#[derive(Debug, clap::Args)]
#[command(override_usage = CONDUCT_USAGE, after_long_help = CONDUCT_HELP)]
pub(crate) struct ConductArgs {
    /// The proxies, the one next to the editor first: a name below with its arguments, or the command
    /// line of a program, each as one argument
    #[arg(value_name = "PROXY")]
    pub(crate) proxies: Vec<String>,

    /// Write each message at each place of the chain to this file, a page for a browser; it contains
    /// everything that is said
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Start the chain again when a part of it has ended, and resume the sessions, without a word to the
    /// editor. A turn that was running fails
    #[arg(long)]
    pub(crate) restart: bool,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

impl ConductArgs {
    /// Finds the proxies behind a first `--`, and validates the rest.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        if self.proxies.is_empty()
            && let Some(at) = self.agent.command.iter().position(|word| word == "--")
        {
            let agent = self.agent.command.split_off(at + 1);
            let mut proxies = std::mem::replace(&mut self.agent.command, agent);
            proxies.pop();
            for proxy in proxies {
                let proxy = proxy.into_string().map_err(|proxy| {
                    let message = format!("a proxy must be UTF-8: {}", proxy.display());
                    (ErrorKind::InvalidUtf8, message)
                })?;
                self.proxies.push(proxy);
            }
        }
        match self.agent.is_given() {
            true => self.agent.settle_local(),
            // A proxy of another conductor.
            false if !self.proxies.is_empty() => Ok(()),
            false => self.agent.settle(),
        }
    }
}

const CONDUCT_USAGE: &str = "\
acp conduct [OPTIONS] PROXY... -- AGENT [ARGUMENT]...
       acp conduct [OPTIONS] --agent NAME PROXY...
       acp conduct [OPTIONS] PROXY...";

const CONDUCT_HELP: &str = "\
Use:
  Configure this command in the editor in place of the agent, for example
  in Zed:
    { \"agent_servers\": { \"Guarded\": { \"command\": \"acp\",
      \"args\": [\"conduct\", \"policy rules.toml\", \"--\", \"opencode\", \"acp\"] } } }
  Without an agent, the chain is a proxy of another conductor.

Proxies:
  policy RULES         decide by a file of rules what the agent may do; what no
                       rule decides is left to the editor
  redact [PATTERN...]  replace secrets in prompts, files and output of commands
                       that the editor gives; more than the usual ones by
                       regular expressions
  audit FILE           add a JSON line for each effect
  context FILE...      put the files before the first prompt of each session
  tools SERVERS...     give each session these MCP servers: a JSON file with
                       mcpServers, or NAME=COMMAND
  record FILE [--verbatim]
                       write a transcript, as `acp record`
  Anything else is the command line of a program that is a proxy: it answers
  proxy/initialize, and sends its successor messages in proxy/successor.

Exit codes:
  0 when the editor has disconnected, 1 for an error of acp, 2 for wrong usage,
  3 if the agent or a proxy cannot be started or ends before.";
