//! The arguments that select an agent: a configured one, a command line or a URL.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;

use crate::agents::Agents;
use crate::launch::Launch;

/// The protocol of another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    Chimera,
}

/// The agent of a command.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct AgentArgs {
    /// Use the agent that is configured under this name; `acp agents` lists them
    #[arg(
        id = "agent_name",
        long = "agent",
        value_name = "NAME",
        conflicts_with_all = ["agent", "url"]
    )]
    pub(crate) name: Option<String>,

    /// Look up NAME in this file first: tables `[[agents]]` in TOML; see `acp agents --help`
    #[arg(
        id = "agents",
        long = "agents",
        value_name = "FILE",
        conflicts_with_all = ["agent", "url"]
    )]
    pub(crate) file: Option<PathBuf>,

    /// What --agents says of the agent.
    #[arg(skip)]
    pub(crate) found: Option<Box<Launch>>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// Offer this protocol version: 1, or 2 for the draft. An agent that does not support version 2
    /// may answer with version 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) protocol_version: u8,

    /// Speak another system's protocol with the agent. `chimera`: the agent is made for Chimera's ACP
    /// client; it asks for no permissions, and a cancelled turn ends its process
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub(crate) dialect: Option<Dialect>,

    /// Use the agent of `acp chat --demo`.
    #[arg(skip)]
    pub(crate) demo: bool,

    /// The agent's command line; no shell interprets it
    #[arg(
        id = "agent",
        last = true,
        conflicts_with = "url",
        value_name = "AGENT"
    )]
    pub(crate) command: Vec<OsString>,
}

impl AgentArgs {
    /// Returns a key that is equal for the same agent.
    pub(crate) fn identity(&self) -> String {
        if self.demo {
            return "demo".to_owned();
        }
        if let Some(name) = &self.name {
            return match &self.file {
                // Two files may have different agents of this name.
                Some(file) => {
                    let file = file.canonicalize().unwrap_or_else(|_| file.clone());
                    format!("name {name} of {}", file.display())
                }
                None => format!("name {name}"),
            };
        }
        if let Some(url) = &self.remote.url {
            return format!("url {url}");
        }
        let words = self.command.iter().map(|word| word.to_string_lossy());
        format!("command {:?}", words.collect::<Vec<_>>())
    }

    /// Returns how to start the agent, configured or not.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the remedy if the name cannot be used.
    pub(crate) fn launch(&self) -> Result<Launch, String> {
        if let Some(found) = &self.found {
            return Ok((**found).clone());
        }
        if let Some(name) = &self.name {
            return Agents::read(None)?.launch(name);
        }
        Ok(Launch::of_words(self.command.iter().cloned()))
    }

    /// Returns whether an agent was given.
    pub(crate) fn is_given(&self) -> bool {
        self.demo || self.name.is_some() || self.remote.url.is_some() || !self.command.is_empty()
    }

    /// Validates the arguments as [`settle`](Self::settle) does, with an agent's name as a positional argument.
    pub(super) fn settle_named(&mut self, name: Option<String>) -> Result<(), (ErrorKind, String)> {
        if let Some(name) = name {
            if self.is_given() {
                let message = format!("expected one agent, got another one by the name `{name}`");
                return Err((ErrorKind::ArgumentConflict, message));
            }
            self.name = Some(name);
        }
        self.settle()
    }

    /// Validates the arguments as [`settle`](Self::settle) does, and requires an agent process on this machine.
    pub(super) fn settle_local(&mut self) -> Result<(), (ErrorKind, String)> {
        if self.dialect.is_some() {
            let message =
                "--dialect cannot be used here: messages are recorded as the agent sends them";
            return Err((ErrorKind::ArgumentConflict, message.to_owned()));
        }
        if self.remote.url.is_some() {
            let message = "--url cannot be used here: only an agent on standard input and output \
                can be recorded";
            return Err((ErrorKind::ArgumentConflict, message.to_owned()));
        }
        if self.protocol_version != 1 {
            let message = "--protocol-version cannot be used here: the editor and the agent settle \
                the version between them";
            return Err((ErrorKind::ArgumentConflict, message.to_owned()));
        }
        self.settle()
    }

    /// Rejects arguments without an agent, and reads the file of agents.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        if let (Some(file), Some(name)) = (&self.file, &self.name) {
            let found = Agents::read(Some(file)).and_then(|agents| agents.launch(name));
            let found = found.map_err(|message| (ErrorKind::ValueValidation, message))?;
            self.found = Some(Box::new(found));
        }
        if self.is_given() {
            return Ok(());
        }
        let message = "no agent is given. Name a configured one (`acp agents` lists them), or put \
            a command line after `--`";
        Err((ErrorKind::MissingRequiredArgument, message.to_owned()))
    }
}

/// The URL and the connection options of a remote agent.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub(crate) struct RemoteArgs {
    /// Use the agent at this URL instead of a command: http, https, ws or wss
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Read the server's token from this file [default: the variable ACP_TOKEN, which agents and
    /// terminals on this machine do not inherit]
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "agent")]
    pub(crate) token_file: Option<PathBuf>,

    /// Send this header with each request
    #[arg(
        long,
        value_name = "NAME:VALUE",
        requires = "url",
        conflicts_with = "agent"
    )]
    pub(crate) header: Vec<String>,

    /// Trust the certificate authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "agent")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Trust only the certificate with this SHA-256 fingerprint
    #[arg(
        long,
        value_name = "SHA256",
        requires = "url",
        conflicts_with = "ca_file"
    )]
    pub(crate) fingerprint: Option<String>,

    /// Send the token and the headers to another machine without encryption, over http or ws
    #[arg(long, requires = "url", conflicts_with = "agent")]
    pub(crate) insecure: bool,
}
