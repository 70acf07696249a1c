//! The arguments of `acp agents`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::run::seconds;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = AGENTS_HELP
)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,

    /// List only these agents
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// Also list the agents of this file, tables `[[agents]]` in TOML, before the others
    #[arg(long, value_name = "FILE")]
    pub(crate) agents: Option<PathBuf>,

    /// Also list the entries of the registry
    #[arg(long)]
    pub(crate) all: bool,

    /// Start each agent, send `initialize`, and report its version
    #[arg(long)]
    pub(crate) check: bool,

    /// With --check: timeout per agent in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Download the entries of the ACP registry.
    ///
    /// Downloads metadata and start commands, not the agents.
    Update {
        /// The registry's index
        #[arg(value_name = "URL", default_value = crate::agents::REGISTRY_URL)]
        url: String,
    },

    /// Download an agent that the registry distributes as an archive, and install it for this user.
    ///
    /// Verifies the checksum of the registry. `acp run NAME` starts the agent.
    Install(InstallArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = INSTALL_HELP)]
pub(crate) struct InstallArgs {
    /// The id of the registry's entry; `acp agents --all` lists them
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Use this file instead of downloading the archive; its checksum is verified too
    #[arg(long, value_name = "FILE")]
    pub(crate) archive: Option<PathBuf>,

    /// Reinstall a version that is already installed
    #[arg(long)]
    pub(crate) again: bool,

    /// Install an archive for which the registry has no checksum
    #[arg(long)]
    pub(crate) allow_unverified: bool,

    /// Replace the installed version by an older one, or by one whose order is unknown
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
}

const INSTALL_HELP: &str = "\
The agent is unpacked to agents/NAME/VERSION in acp's folder below the folder
of data, such as ~/.local/share/acp, atomically; older versions are removed
afterwards. To remove an agent, remove its folder. Supported: .tar.gz and .zip
archives, and single programs.

Rejected:
  a wrong checksum; no checksum (SHA-256), unless --allow-unverified is given;
  a version older than the installed one, unless --allow-downgrade is given;
  unencrypted URLs, except of this machine; archives with names outside the
  folder, with links, or with more than 4 GiB; downloads of more than 1 GiB

Entries that npx or uvx start need no installation.

Exit codes:
  0    installed, or nothing to install
  1    the download or the archive cannot be used, or the folder cannot
       be written
  2    wrong usage, or an unknown NAME
  130  cancelled; nothing is installed

Examples:
  acp agents update && acp agents install opencode
  acp agents install opencode --archive opencode-linux-x64.tar.gz";

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// A table
    Text,
    /// One JSON object per line
    Json,
}

const AGENTS_HELP: &str = "\
Files, in lookup order:
  file       the file of --agents, if it is given; see below
  acp        agents.json in acp's folder below the folder of configurations,
             such as ~/.config/acp/agents.json
  zed        Zed's settings.json, such as ~/.config/zed/settings.json
  jetbrains  ~/.jetbrains/acp.json
  registry   ID/agent.json in the folder $ACP_REGISTRY [default: registry in
             acp's folder below the folder of data, such
             as ~/.local/share/acp/registry]

  The first three have the same member; comments and trailing commas
  are allowed:
    { \"agent_servers\": { \"mine\": { \"command\": \"/path/to/agent\", \"args\": [\"acp\"], \"env\": {} } } }
  An entry of type \"registry\" takes its command from the registry's entry of
  that id. Entries of the registry are started by npx or uvx, which download
  the package. An entry that is distributed as an archive must be installed
  first: `acp agents install NAME`.

Files of --agents:
  Tables in TOML. `command` is split into words as by a shell, or is a list;
  `agent` is the name of an agent of the other files instead. A directory is
  relative to the current one, and to --cwd of `acp mcp`. All but `name`, and
  `command` or `agent`, may be left out.
    [[agents]]
    name = \"reviewer\"
    description = \"Reviews changes\"
    command = \"opencode acp\"
    directory = \"~/project\"
    env = { KEY = \"value\" }
    env_remove = [\"HTTP_PROXY\"]
    sandbox = { mechanism = \"landlock\", write = [], network = true }
    model = \"fast\"
    mode = \"ask\"
    options = { thought_level = \"high\" }
  The directory, the sandbox, the model, the mode and the options are used
  where `acp run` and `acp chat` have no option for them. `acp-server serve
  --agents` reads the same files; members that only it has a use for make the
  agent unusable here.

Status:
  found      the program exists
  missing    the program is not found
  unusable   the entry has no command that acp can start; the reason follows
  ready      with --check: the agent answered `initialize`
  failed     with --check: it did not answer `initialize`; the reason follows

Exit codes:
  0    all checked agents are ready
  1    the output cannot be written, or the registry cannot be downloaded
  2    wrong usage, or an unknown NAME
  3    a checked agent is not ready
  130  cancelled

Examples:
  acp agents
  acp agents --check codex
  acp agents --agents agents.toml && acp run --agents agents.toml reviewer 'Look at HEAD'
  acp agents --all --format json | jq -r .name";
