//! Hosting another agent: `acp-server host`, and the command behind `acp-server serve`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_client::remote::{RemoteAgent, RemoteError, Token as RemoteToken};
use acp_sandbox::Sandbox;
use acp_sandbox::args::SandboxArgs;
use acp_sdk::v1::ClientCapabilities;
use acp_server_host::{AgentProcesses, HostedAgent, HostedAgentBuilder, HostedLimits};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::Failure;
#[cfg(unix)]
use super::agent_user::AgentUser;
#[cfg(unix)]
use super::stdio::LocalTools;
use super::stdio::{self, Serve};
use super::store::StoreArgs;
use super::usage::usage;

/// The variable with the token for another server.
const ACP_TOKEN: &str = "ACP_TOKEN";

/// What `acp-server host --help` explains besides the options.
const ABOUT_HOST: &str = r#"The client sees the agent COMMAND, with the sessions of this server: kept in a
file, resumed from any event, forked, and loaded again when the agent has
died. For example, in Zed's settings.json:
  "agent_servers": { "opencode": { "type": "custom", "command": "acp-server",
      "args": ["host", "--", "opencode", "acp"] } }
`acp-server serve -- COMMAND` does the same for many clients, over HTTP
and WebSocket.

Exit codes: as without a command, and 2 when COMMAND cannot be started or does
not answer."#;

/// Serves another agent, which speaks version 1 of the protocol on its standard input and output, to
/// one client on standard input and output.
#[derive(Debug, Args)]
#[command(after_help = ABOUT_HOST)]
pub struct Host {
    /// How to serve.
    #[command(flatten)]
    pub serve: Serve,
    /// The agent.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// The agent to host.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Which sessions share a process of COMMAND: all whose clients offer the same (`shared`), or none
    /// (`session`). A process of its own costs its memory, and dies alone
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Processes::Shared)]
    pub agent_process: Processes,
    /// Seconds without use after which a process of COMMAND is ended, if its sessions can go on in another
    /// one; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub agent_idle_timeout: u64,
    /// Seconds after which a process of COMMAND is ended when it is not used, if its sessions can go on in
    /// another one; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub agent_max_age: u64,
    /// MiB of memory of a process of COMMAND and those that it starts; beyond it they are ended. 0: no
    /// limit
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub agent_max_memory: u64,
    /// User of this machine that COMMAND runs as, so that it cannot read the server's tokens and
    /// store. The server must be root, or have CAP_SETUID and CAP_SETGID as ambient capabilities; Linux
    #[cfg(unix)]
    #[arg(long, value_name = "USER", conflicts_with = "sandbox")]
    pub agent_user: Option<String>,
    /// Whether COMMAND is confined.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Serve the agent at this URL instead of a command: http, https, ws or wss
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "sandbox"])]
    pub url: Option<String>,
    /// Read the token for the server at --url from this file [default: the variable ACP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub url_token_file: Option<PathBuf>,
    /// Trust the certificate authorities in this PEM file for --url instead of the system's
    #[arg(long, value_name = "FILE", requires = "url")]
    pub url_ca_file: Option<PathBuf>,
    /// Send the token for --url to another machine without encryption, over http or ws
    #[arg(long, requires = "url")]
    pub url_insecure: bool,
    /// The agent and its arguments, after `--`; it speaks version 1 of the protocol on its standard
    /// input and output
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Which sessions share a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Processes {
    /// All whose clients offer the same files, terminals and elicitations
    Shared,
    /// None
    Session,
}

/// An agent to host, from the options or from a file.
#[derive(Debug, Default)]
pub(super) struct HostedCommand {
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// The agent of another server instead.
    pub(super) remote: Option<RemoteAgent>,
    /// Where it works; without it, in the current directory.
    pub(super) directory: Option<PathBuf>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) env_remove: Vec<String>,
    pub(super) processes: AgentProcesses,
    pub(super) limits: HostedLimits,
    pub(super) user: Option<String>,
    pub(super) sandbox: SandboxArgs,
}

/// Why an agent is not hosted.
#[derive(Debug)]
pub(super) enum NotHosted {
    User(String),
    Sandbox(String),
    Command(String),
}

impl NotHosted {
    /// Returns the failure of the command whose options say so.
    fn into_failure<T>(self) -> Result<T, Failure> {
        match self {
            Self::User(reason) => usage(format!("--agent-user: {reason}")),
            Self::Sandbox(reason) => usage(format!("--sandbox: {reason}")),
            Self::Command(reason) => usage(reason),
        }
    }
}

impl HostedCommand {
    /// Starts the agent. `leftovers` is the folder in which servers of its store register.
    ///
    /// # Errors
    ///
    /// When the command cannot be started, the server cannot be reached, or it is no agent; when it cannot
    /// be run as this user or so confined.
    pub(super) async fn start(self, leftovers: Option<PathBuf>) -> Result<HostedAgent, NotHosted> {
        start(self.builder(leftovers)?).await
    }

    /// Returns what starts the agent.
    ///
    /// # Errors
    ///
    /// When it cannot be run as this user or so confined.
    fn builder(self, leftovers: Option<PathBuf>) -> Result<HostedAgentBuilder, NotHosted> {
        let sandbox = self.prepared_sandbox()?;
        let agent = match self.remote {
            Some(remote) => HostedAgent::at(remote),
            None => {
                let mut words = self.words.into_iter();
                let program = words.next().unwrap_or_default();
                tracing::info!("starting {}", program.to_string_lossy());
                HostedAgent::builder(program).args(words)
            }
        };
        let mut agent = agent
            .processes(self.processes)
            .limits(self.limits)
            .sandbox(sandbox);
        if let Some(directory) = self.directory {
            agent = agent.current_dir(directory);
        }
        if let Some(name) = &self.user {
            #[cfg(unix)]
            {
                agent = AgentUser::find(name).map_err(NotHosted::User)?.apply(agent);
            }
            #[cfg(not(unix))]
            return Err(NotHosted::User(format!(
                "{name:?}: only Unix has users to choose"
            )));
        }
        for name in self.env_remove {
            agent = agent.env_remove(name);
        }
        for (name, value) in self.env {
            agent = agent.env(name, value);
        }
        if let Some(folder) = leftovers {
            agent = agent.end_leftovers(folder);
        }
        Ok(agent)
    }

    /// Prepares the sandbox of all processes, which work in the directory.
    fn prepared_sandbox(&self) -> Result<Option<Sandbox>, NotHosted> {
        let words = self.words.iter().map(OsString::as_os_str);
        let variable = |name: &str| match self.env.get(name) {
            Some(value) => Some(value.into()),
            None => std::env::var_os(name),
        };
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        let prepared = self.sandbox.prepare(words, variable, directory);
        let sandbox = prepared.map_err(|error| NotHosted::Sandbox(error.to_string()))?;
        if let Some(sandbox) = &sandbox {
            tracing::info!("{sandbox}");
        }
        Ok(sandbox)
    }
}

impl AgentArgs {
    /// Returns the limits of the processes.
    pub(super) fn limits(&self) -> HostedLimits {
        let mut limits = HostedLimits::default();
        limits.idle_timeout = Duration::from_secs(self.agent_idle_timeout);
        limits.max_age = Duration::from_secs(self.agent_max_age);
        #[cfg(target_os = "linux")]
        {
            limits.max_memory = self.agent_max_memory.saturating_mul(1 << 20);
        }
        limits
    }

    /// Returns the agent at the URL.
    fn remote(&self, url: &str) -> Result<RemoteAgent, RemoteError> {
        let token = match &self.url_token_file {
            Some(path) => Some(RemoteToken::from_file(path)?),
            None => RemoteToken::from_env(ACP_TOKEN)?,
        };
        let mut agent = RemoteAgent::new(url)?.token(token);
        if let Some(path) = &self.url_ca_file {
            agent = agent.ca_file(path)?;
        }
        if self.url_insecure {
            agent = agent.insecure();
        }
        Ok(agent)
    }

    /// Starts the agent, or connects to it; `None` if there is neither command nor URL.
    ///
    /// # Errors
    ///
    /// Wrong usage, when the command cannot be started, the server at the URL cannot be reached, or it is
    /// no agent.
    pub(super) async fn start(&self, store: &StoreArgs) -> Result<Option<HostedAgent>, Failure> {
        match self.builder(store)? {
            Some(agent) => start(agent)
                .await
                .map(Some)
                .or_else(NotHosted::into_failure),
            None => Ok(None),
        }
    }

    /// Returns what starts the agent, or connects to it; `None` if there is neither command nor URL.
    ///
    /// # Errors
    ///
    /// Wrong usage.
    fn builder(&self, store: &StoreArgs) -> Result<Option<HostedAgentBuilder>, Failure> {
        #[cfg(unix)]
        let user = self.agent_user.clone();
        #[cfg(not(unix))]
        let user = None::<String>;
        let remote = match self.url.as_deref().map(|url| self.remote(url)).transpose() {
            Ok(remote) => remote,
            Err(error) => return usage(format!("--url: {error}")),
        };
        let is_command = !self.command.is_empty();
        let has_url_options =
            self.url_token_file.is_some() || self.url_ca_file.is_some() || self.url_insecure;
        // clap does not check it when there is a command.
        if remote.is_none() && has_url_options {
            return usage("the options --url-… are for the server at --url URL");
        }
        if !is_command && user.is_some() {
            return usage("--agent-user is for the command of an agent, after --");
        }
        if !is_command && self.sandbox.sandbox.is_some() {
            return usage("--sandbox confines the command of an agent, after --");
        }
        #[cfg(target_os = "linux")]
        if !is_command && self.agent_max_memory > 0 {
            return usage("--agent-max-memory bounds the command of an agent, after --");
        }
        if !is_command && remote.is_none() {
            // A set `--agent-idle-timeout` cannot be distinguished from its default.
            let unused = if self.agent_max_age > 0 {
                "--agent-max-age"
            } else if self.agent_process != Processes::Shared {
                "--agent-process"
            } else {
                return Ok(None);
            };
            return usage(format!(
                "{unused} is for the command of an agent, after --, or for --url URL"
            ));
        }
        let command = HostedCommand {
            words: self.command.clone(),
            remote,
            processes: match self.agent_process {
                Processes::Shared => AgentProcesses::Shared,
                Processes::Session => AgentProcesses::PerSession,
            },
            limits: self.limits(),
            user,
            sandbox: self.sandbox.clone(),
            ..HostedCommand::default()
        };
        let agent = command.builder(store.agents_folder()?);
        agent.map(Some).or_else(NotHosted::into_failure)
    }
}

async fn start(agent: HostedAgentBuilder) -> Result<HostedAgent, NotHosted> {
    match agent.start().await {
        Ok(agent) => {
            tracing::info!("hosting {}", agent.name());
            Ok(agent)
        }
        Err(error) => Err(NotHosted::Command(error.to_string())),
    }
}

/// Waits for the first message of the client on standard input, and returns what it offers. The agent is
/// started with that, so that it is started once.
async fn first_client() -> Result<ClientCapabilities, Failure> {
    /// `initialize` of either version.
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Params {
        client_capabilities: ClientCapabilities,
        capabilities: ClientCapabilities,
    }
    #[derive(Deserialize)]
    struct First {
        params: Params,
    }
    let first = acp_sdk::peek_stdio().await?;
    // Anything else is answered by the server, and the agent can do without.
    let read = first.and_then(|first| serde_json::from_slice::<First>(&first.text).ok());
    let Params {
        client_capabilities,
        capabilities,
    } = read.map(|first| first.params).unwrap_or_default();
    let is_v1 = client_capabilities != ClientCapabilities::default();
    Ok(if is_v1 {
        client_capabilities
    } else {
        capabilities
    })
}

/// Serves until the client has closed its side.
pub(super) async fn host(args: Box<Host>) -> Result<(), Failure> {
    #[cfg(unix)]
    if args.agent.agent_user.is_some() && args.serve.local_tools != LocalTools::Off {
        let reason = "--agent-user does not go with --local-tools: the server runs those commands, as \
                      its own user";
        return usage(reason);
    }
    let Some(agent) = args.agent.builder(&args.serve.store)? else {
        return usage("host needs the command of an agent, after --, or --url");
    };
    let agent = start(agent.first_client(&first_client().await?)).await;
    let agent = agent.or_else(NotHosted::into_failure)?;
    let served = stdio::serve(agent.clone(), args.serve).await;
    agent.shutdown().await;
    served
}
