//! The agents that `acp-server serve` serves: one, or those of a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acp_client::agents_file::{AgentEntry, AgentStart, AgentsFile, AgentsFileError};
use acp_reference_agent::Reference;
use acp_sandbox::args::SandboxArgs;
use acp_server::{InitialSettings, Limits, Policies, Server};
use acp_server_host::{AgentProcesses, HostedAgent, HostedLimits};
use acp_server_remote::{Agents, ServedAgent};
use futures_util::future::{join_all, try_join_all};

use super::super::Failure;
use super::super::hosted::{HostedCommand, NotHosted};
use super::super::store::{StoreArgs, StoreUse};
use super::super::usage::usage;
use super::args::RemoteServe;

/// Agents that were started, and are not served yet.
pub(super) struct StartedAgents(Vec<StartedAgent>);

struct StartedAgent {
    /// Its entry in a file.
    entry: Option<AgentEntry>,
    /// `None` is the reference agent.
    hosted: Option<HostedAgent>,
    /// Where the agent of a file works.
    directory: Option<PathBuf>,
    store: StoreArgs,
    settings: InitialSettings,
}

impl StartedAgents {
    /// Starts the agents of the arguments, all at once.
    ///
    /// # Errors
    ///
    /// Wrong usage, when the file is wrong, or one cannot be started. The others end then.
    pub(super) async fn start(args: &RemoteServe) -> Result<Self, Failure> {
        let Some(path) = &args.agents else {
            return Ok(Self(vec![StartedAgent {
                entry: None,
                hosted: args.agent.start(&args.store).await?,
                directory: None,
                store: args.store.clone(),
                settings: args.settings.settings(),
            }]));
        };
        let path = path.clone();
        let read = tokio::task::spawn_blocking(move || AgentsFile::read(path)).await?;
        let file = match read {
            Ok(file) => file,
            Err(error) => return usage(error.to_string()),
        };
        let mut stores = BTreeSet::new();
        let mut starting = Vec::new();
        for entry in file.agents() {
            if args.store.is_memory() && entry.store.is_some() {
                let reason = "with `--store memory` no agent has a file; leave the member out, or name a file by --store";
                return usage(file.error(entry, "store", reason).to_string());
            }
            let store = args.store.of_agent(&entry.name, entry.store.as_deref())?;
            if let Some(path) = &store.store
                && !store.is_memory()
                && !stores.insert(path.clone())
            {
                let reason = format!("another agent has the file {}", path.display());
                return usage(file.error(entry, "store", reason).to_string());
            }
            starting.push(start(&file, entry, store, args.agent.limits()));
        }
        Ok(Self(try_join_all(starting).await?))
    }

    /// Opens the stores, and returns the agents as they are served.
    ///
    /// # Errors
    ///
    /// Those of the stores, and wrong usage.
    pub(super) async fn serve(&self, args: &RemoteServe) -> Result<Agents, Failure> {
        let mut served = Vec::new();
        for agent in &self.0 {
            let server = agent.server(args).await?;
            let Some(entry) = &agent.entry else {
                return Ok(server.into());
            };
            served.push(
                ServedAgent::new(&entry.name, server)
                    .description(entry.description.clone())
                    .directory(agent.directory.clone()),
            );
        }
        Ok(Agents::new(served)?)
    }

    /// Logs where the sessions of each are kept.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn log(&self) -> Result<(), Failure> {
        for (index, agent) in self.0.iter().enumerate() {
            let place = agent.store.place()?;
            match &agent.entry {
                None => tracing::info!("store: {place}"),
                Some(entry) => {
                    let name = &entry.name;
                    let default = if index == 0 { " and /acp" } else { "" };
                    tracing::info!("agent {name}: at /acp/{name}{default}; store: {place}");
                }
            }
        }
        Ok(())
    }

    /// Ends the processes.
    pub(super) async fn shutdown(self) {
        let hosted = self.0.iter().filter_map(|agent| agent.hosted.as_ref());
        join_all(hosted.map(HostedAgent::shutdown)).await;
    }
}

impl StartedAgent {
    async fn server(&self, args: &RemoteServe) -> Result<Server, Failure> {
        let server = match &self.hosted {
            Some(agent) => Server::builder(agent.clone()),
            None => Server::builder(Reference),
        };
        let mut limits = Limits::default();
        args.keep.apply(&mut limits);
        limits.adoption.per_second = args.node.node_adopt;
        let server = args.questions.apply(server, Policies::default(), None)?;
        let used = StoreUse {
            sync: false,
            node: Some(args.node.identity()),
        };
        let server = server.store(self.store.open(used).await?).limits(limits);
        Ok(server.initial_settings(self.settings.clone()).build())
    }
}

/// Starts an agent of a file.
async fn start(
    file: &AgentsFile,
    entry: &AgentEntry,
    store: StoreArgs,
    limits: HostedLimits,
) -> Result<StartedAgent, Failure> {
    let leftovers = store.agents_folder()?;
    let command = match command(file, entry, limits) {
        Ok(command) => command,
        Err(error) => return usage(error.to_string()),
    };
    let directory = command.directory.clone();
    let started = command.start(leftovers).await.map_err(|error| match error {
        NotHosted::User(reason) => file.error(entry, "user", reason),
        NotHosted::Sandbox(reason) => file.error(entry, "sandbox", reason),
        NotHosted::Command(reason) => file.error(entry, "command", reason),
    });
    let mut settings = InitialSettings::default();
    settings.model.clone_from(&entry.model);
    settings.mode.clone_from(&entry.mode);
    settings.options = entry.options.clone().into_iter().collect();
    match started {
        Ok(hosted) => Ok(StartedAgent {
            entry: Some(entry.clone()),
            hosted: Some(hosted),
            directory,
            store,
            settings,
        }),
        Err(error) => usage(error.to_string()),
    }
}

fn command(
    file: &AgentsFile,
    entry: &AgentEntry,
    mut limits: HostedLimits,
) -> Result<HostedCommand, AgentsFileError> {
    let AgentStart::Command(words) = &entry.start else {
        let reason = "a server knows no configured agents; name the command";
        return Err(file.error(entry, "agent", reason));
    };
    if entry.user.is_some() && entry.sandbox.is_some() {
        let reason = "an agent that runs as another user cannot be confined as well";
        return Err(file.error(entry, "user", reason));
    }
    let directory = entry.directory_in(Path::new("."));
    let directory = directory.map_err(|reason| file.error(entry, "directory", reason))?;
    let wanted = &entry.limits;
    #[cfg(not(target_os = "linux"))]
    if wanted.max_memory.is_some() {
        return Err(file.error(entry, "limits.max_memory", "only Linux can measure it"));
    }
    limits.processes = wanted.processes.unwrap_or(limits.processes);
    limits.start_timeout = wanted.start_timeout.unwrap_or(limits.start_timeout);
    limits.answer_timeout = wanted.answer_timeout.unwrap_or(limits.answer_timeout);
    limits.terminals = wanted.terminals.unwrap_or(limits.terminals);
    limits.idle_timeout = wanted.idle_timeout.unwrap_or(limits.idle_timeout);
    limits.max_age = wanted.max_age.unwrap_or(limits.max_age);
    if let Some(mebibytes) = wanted.max_memory {
        limits.max_memory = mebibytes.saturating_mul(1 << 20);
    }
    let sandbox = entry.sandbox.as_ref().map(|sandbox| SandboxArgs {
        sandbox: Some(sandbox.mechanism),
        sandbox_write: sandbox.write.clone(),
        sandbox_no_network: !sandbox.network,
    });
    Ok(HostedCommand {
        words: words.clone(),
        remote: None,
        directory,
        env: entry.env.clone(),
        env_remove: entry.env_remove.clone(),
        processes: match entry.process_per_session {
            Some(true) => AgentProcesses::PerSession,
            _ => AgentProcesses::Shared,
        },
        limits,
        user: entry.user.clone(),
        sandbox: sandbox.unwrap_or_default(),
    })
}
