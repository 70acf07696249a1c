//! The arguments of `acp record`.

use std::path::PathBuf;

use super::agent::AgentArgs;

#[derive(Debug, clap::Args)]
#[command(override_usage = RECORD_USAGE, after_long_help = RECORD_HELP)]
pub(crate) struct RecordArgs {
    /// The transcript to write, which must not exist, or a directory for a new one of each run
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Record all content, including secrets; by default, text is replaced by `[redacted]`
    #[arg(long)]
    pub(crate) verbatim: bool,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

const RECORD_USAGE: &str = "\
acp record [OPTIONS] FILE -- AGENT [ARGUMENT]...
       acp record [OPTIONS] --agent NAME FILE";

const RECORD_HELP: &str = "\
Use:
  Configure this command in the editor in place of the agent, for example
  in Zed:
    { \"agent_servers\": { \"Recorded\": { \"command\": \"acp\",
      \"args\": [\"record\", \"/tmp\", \"--\", \"opencode\", \"acp\"] } } }
  Bytes are forwarded unchanged between editor and agent. The agent's standard
  error is forwarded too: unchanged to a pipe or file, to a terminal without
  what would control it.

Transcript:
  One JSON object per line: dir (c2a: client to agent, a2c: agent to client),
  at (Unix time in seconds), and msg, the message; or raw, a line that is not
  a message; or lost, the number of messages that were received faster than
  they could be written. It ends at 256 MiB. `acp-conformance check FILE`
  validates it.

Exit codes:
  The agent's, or 128 plus the number of the signal that terminated it.
  Without an agent: 1 for an error of acp, 2 for wrong usage or a FILE that
  exists, 3 if the agent cannot be started.";
