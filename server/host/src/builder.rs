//! The command of a hosted agent, and how it is run.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "remote")]
use acp_client::remote::RemoteAgent;
use acp_client::{AgentCommand, Sandbox};
use acp_sdk::v1::ClientCapabilities;

use super::leftovers::Registered;
use super::logging_in::Logins;
use super::offered::Offered;
use super::stderr::PassOn;
use super::version::Version;
use super::{AgentProcesses, HostedError, HostedLimits};

/// The command of a [`HostedAgent`](crate::HostedAgent): a program and its arguments, which no shell reads. Or the URL of a
/// server that has the agent.
#[must_use]
#[derive(Clone, Debug)]
pub struct HostedAgentBuilder {
    /// Of the agent at a URL, its host.
    program: OsString,
    #[cfg(feature = "remote")]
    url: Option<RemoteAgent>,
    args: Vec<OsString>,
    /// Without a value, the variable is removed.
    env: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    processes: AgentProcesses,
    limits: HostedLimits,
    sandbox: Option<Sandbox>,
    /// A program that starts the command, and its arguments.
    starter: Option<(OsString, Vec<OsString>)>,
    leftovers: Option<PathBuf>,
    first_offered: Offered,
}

impl HostedAgentBuilder {
    pub(super) fn new(program: OsString) -> Self {
        Self {
            program,
            #[cfg(feature = "remote")]
            url: None,
            args: Vec::new(),
            env: Vec::new(),
            directory: None,
            processes: AgentProcesses::default(),
            limits: HostedLimits::default(),
            sandbox: None,
            starter: None,
            leftovers: None,
            first_offered: Offered::default(),
        }
    }

    #[cfg(feature = "remote")]
    pub(super) fn at(agent: RemoteAgent) -> Self {
        let url = agent.url();
        let host = url.split('/').nth(2).unwrap_or_default();
        let mut builder = Self::new(host.into());
        builder.url = Some(agent);
        builder
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. The others are inherited, except `ACP_SERVER_TOKEN`.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Removes an inherited environment variable.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Sets the working directory of the processes (default: that of this process). A relative path to
    /// the program is still one in the directory of this process.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets which sessions share a process (default: [`AgentProcesses::Shared`]).
    pub fn processes(mut self, processes: AgentProcesses) -> Self {
        self.processes = processes;
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: HostedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Confines each process, and the processes that it starts. Sessions in directories that are not
    /// writable there are read only.
    pub fn sandbox(mut self, sandbox: impl Into<Option<Sandbox>>) -> Self {
        self.sandbox = sandbox.into();
        self
    }

    /// Has another program start the command, which follows these arguments: such as `setpriv` for
    /// another user. It should replace itself by the command. A sandbox is around both.
    pub fn started_by<A: Into<OsString>>(
        mut self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        self.starter = Some((program.into(), args));
        self
    }

    /// Ends the processes of agents that a killed server has left behind, before the first one is started
    /// (Linux). Servers of the same store register in this folder, which belongs to them alone. Default:
    /// none; processes whose input is closed end by themselves, or stay.
    pub fn end_leftovers(mut self, folder: impl Into<PathBuf>) -> Self {
        self.leftovers = Some(folder.into());
        self
    }

    /// Sets what the client offers that opens the first sessions (default: nothing). The first process is
    /// initialized with it, so that it can serve them, and no second one is started. A program that serves one
    /// client reads it with `acp_sdk::peek_stdio` from the client's `initialize`.
    pub fn first_client(mut self, capabilities: &ClientCapabilities) -> Self {
        self.first_offered = Offered::of(capabilities);
        self
    }

    pub(super) async fn spec(self) -> Result<Spec, HostedError> {
        self.check()?;
        Ok(Spec::new(self).await)
    }

    /// Fails when an option would be without effect.
    fn check(&self) -> Result<(), HostedError> {
        #[cfg(feature = "remote")]
        if self.url.is_some() {
            let set = [
                (!self.args.is_empty(), "arguments"),
                (!self.env.is_empty(), "environment"),
                (self.directory.is_some(), "directory"),
                (self.sandbox.is_some(), "sandbox"),
                (self.starter.is_some(), "command that starts it"),
            ];
            if let Some((_, what)) = set.into_iter().find(|(is_set, _)| *is_set) {
                return Err(HostedError::NotForUrl { what });
            }
        }
        Ok(())
    }
}

/// What every process of an agent is started with.
#[derive(Debug)]
pub(super) struct Spec {
    builder: HostedAgentBuilder,
    pub(super) stderr: PassOn,
    pub(super) logins: Arc<Logins>,
    /// Whether the agent is known to speak version 2 only.
    is_v2: AtomicBool,
    /// Dropped after the processes.
    registered: Option<Registered>,
}

impl Spec {
    async fn new(builder: HostedAgentBuilder) -> Self {
        // Processes of an agent at a URL are those of its server.
        #[cfg(feature = "remote")]
        let is_local = builder.url.is_none();
        #[cfg(not(feature = "remote"))]
        let is_local = true;
        let registered = match builder.leftovers.clone() {
            Some(folder) if is_local => register(folder).await,
            _ => None,
        };
        Self {
            stderr: PassOn::start(Path::new(&builder.program)),
            logins: Arc::default(),
            builder,
            is_v2: AtomicBool::new(false),
            registered,
        }
    }

    /// The version that the next process is initialized with: 1, unless the agent has none.
    pub(super) fn version(&self) -> Version {
        match self.is_v2.load(Ordering::Relaxed) {
            true => Version::V2,
            false => Version::V1,
        }
    }

    /// The agent does not speak version 1.
    pub(super) fn use_v2(&self) {
        self.is_v2.store(true, Ordering::Relaxed);
    }

    pub(super) fn limits(&self) -> &HostedLimits {
        &self.builder.limits
    }

    /// Returns what the first process learns that clients offer.
    pub(super) fn first_offered(&self) -> Offered {
        self.builder.first_offered
    }

    pub(super) fn processes(&self) -> AgentProcesses {
        self.builder.processes
    }

    /// Returns the agent behind a URL, if it is one.
    #[cfg(feature = "remote")]
    pub(super) fn url(&self) -> Option<RemoteAgent> {
        let agent = self.builder.url.clone()?;
        Some(agent.max_message_bytes(self.builder.limits.message_bytes))
    }

    /// Returns the command of one process.
    pub(super) fn command(&self) -> AgentCommand {
        let HostedAgentBuilder {
            program,
            args,
            env,
            directory,
            sandbox,
            starter,
            ..
        } = &self.builder;
        let (stderr, logins) = (self.stderr.clone(), self.logins.clone());
        let command = match starter {
            Some((starter, before)) => AgentCommand::new(starter).args(before).arg(program),
            None => AgentCommand::new(program),
        };
        let mut command = command
            .args(args)
            .sandbox(sandbox.clone())
            .on_stderr(move |line| {
                logins.line(line);
                stderr.line(line);
            });
        if let Some(directory) = directory {
            command = command.current_dir(directory);
        }
        if let Some(registered) = &self.registered {
            let (name, marks) = registered.variable();
            command = command.env(name, marks);
        }
        for (name, value) in env {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Registers this server, and ends what killed ones have left. An agent can be hosted without.
async fn register(folder: PathBuf) -> Option<Registered> {
    let of = folder.clone();
    let registered = tokio::task::spawn_blocking(move || Registered::new(&of)).await;
    match registered.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok((registered, 0)) => Some(registered),
        Ok((registered, processes)) => {
            tracing::warn!(
                processes,
                "ended processes of the agent that a killed server has left behind"
            );
            Some(registered)
        }
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(
                %folder, %error,
                "processes of the agent that a killed server leaves behind will not be ended"
            );
            None
        }
    }
}
