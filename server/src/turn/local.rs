//! Who serves a turn's calls for files and terminals: a client, or this machine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::RpcError;
use acp_sdk::v1::{CreateTerminalRequest, ErrorCode, ReadTextFileRequest};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::TurnCore;
use crate::connection::Client;
use crate::limits::LocalTools;
use crate::local::{self, Command, Roots};
use crate::session::Prompter;
use crate::{Capability, Error, Result};

/// Where a call goes.
pub(super) enum Provider {
    Client(Arc<Client>),
    /// The machine of the agent.
    Local,
}

/// What a turn uses of this machine.
#[derive(Debug)]
pub(super) struct Local {
    /// By the link of the client that prompted.
    default: LocalTools,
    commands: Mutex<Commands>,
}

/// Most turns start none, so that nothing is allocated before the first one.
#[derive(Debug, Default)]
struct Commands {
    started: Option<Shared>,
    ended: bool,
}

/// What the commands of a turn share.
#[derive(Clone, Debug)]
struct Shared {
    /// Held by each until it is released.
    places: Arc<Semaphore>,
    /// Cancelled at the end of the turn: commands whose guard was leaked are released, too.
    release: CancellationToken,
}

impl Local {
    pub(super) fn new(origin: Option<&Prompter>) -> Self {
        let default = origin.map(|origin| origin.subscription.local_tools);
        Self {
            default: default.unwrap_or(LocalTools::Off),
            commands: Mutex::default(),
        }
    }

    /// Returns what the next command shares with the others; `limit` of them can be open.
    fn shared(&self, limit: usize) -> Shared {
        let (shared, ended) = {
            let mut commands = self.commands();
            let new = || Shared {
                places: Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS))),
                release: CancellationToken::new(),
            };
            let shared = commands.started.get_or_insert_with(new).clone();
            (shared, commands.ended)
        };
        if ended {
            shared.release.cancel();
        }
        shared
    }

    /// Releases all commands, and those that are started later at once.
    pub(super) fn end(&self) {
        let shared = {
            let mut commands = self.commands();
            commands.ended = true;
            commands.started.clone()
        };
        if let Some(shared) = shared {
            shared.release.cancel();
        }
    }

    fn commands(&self) -> MutexGuard<'_, Commands> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnCore {
    /// Returns whether this machine serves what no client offers.
    pub(super) fn falls_back(&self, capability: Capability) -> bool {
        let is_tool = matches!(
            capability,
            Capability::ReadTextFile | Capability::WriteTextFile | Capability::Terminal
        );
        let policy = self.session.policies().local_tools;
        is_tool && policy.unwrap_or(self.local.default) == LocalTools::Fallback
    }

    /// Returns who serves this.
    ///
    /// # Errors
    ///
    /// As [`needs`](Self::needs).
    pub(super) async fn provider(&self, capability: Capability) -> Result<Provider> {
        match self.needs(capability).await {
            Ok(client) => Ok(Provider::Client(client)),
            Err(Error::Unsupported(_)) if self.falls_back(capability) => Ok(Provider::Local),
            Err(error) => Err(error),
        }
    }

    /// Reads a file of this machine.
    pub(super) async fn read_locally(&self, request: ReadTextFileRequest) -> Result<String> {
        let limits = self.session.core().limits.local.clone();
        let roots = self.roots();
        let read = move || local::read(&roots, &request, &limits);
        self.on_file("fs/read_text_file", read).await
    }

    /// Writes a file of this machine.
    pub(super) async fn write_locally(&self, path: String, text: String) -> Result<()> {
        let roots = self.roots();
        let write = move || local::write(&roots, &path, &text);
        self.on_file("fs/write_text_file", write).await
    }

    /// Starts a command on this machine.
    pub(super) async fn start_locally(&self, request: CreateTerminalRequest) -> Result<Command> {
        const METHOD: &str = "terminal/create";
        let limits = self.session.core().limits.local.clone();
        let shared = self.local.shared(limits.terminals);
        let held = shared.places.try_acquire_owned();
        let held = held.map_err(|_| {
            let reason = format!("{} terminals are open; release one first", limits.terminals);
            failed(METHOD, RpcError::new(ErrorCode::INTERNAL_ERROR, reason))
        })?;
        let id = self.next_id("terminal").into();
        let (roots, cwd) = (self.roots(), self.session.cwd().to_owned());
        let release = shared.release.child_token();
        let tasks = self.errands().clone();
        let start = move || {
            let cwd = (&roots, cwd.as_str());
            Command::start(id, &request, cwd, &limits, release, held, &tasks)
        };
        self.blocking(METHOD, start).await
    }

    /// Uses a file without blocking the runtime.
    async fn on_file<T: Send + 'static>(
        &self,
        method: &'static str,
        work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T> {
        let files = self.session.core().local_files.clone();
        let files = async { files.acquire_owned().await.map_err(Error::failed) };
        let held = self.unless_cancelled(files).await?;
        let work = move || {
            // Held by the work, which goes on when the turn is cancelled.
            let _held = held;
            work()
        };
        self.blocking(method, work).await
    }

    /// Does what may block. It is completed even if the turn is cancelled meanwhile.
    async fn blocking<T: Send + 'static>(
        &self,
        method: &'static str,
        work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
    ) -> Result<T> {
        let runtime = Handle::try_current().map_err(Error::failed)?;
        let done = async {
            let done = self.errands().spawn_blocking_on(work, &runtime).await;
            match done {
                Ok(done) => done.map_err(|error| failed(method, error)),
                Err(panic) => Err(Error::failed(panic)),
            }
        };
        self.unless_cancelled(done).await
    }

    /// The directories that local files and commands are confined to.
    fn roots(&self) -> Roots {
        let mut roots = vec![self.session.cwd().to_owned()];
        roots.extend(self.session.additional_directories());
        Roots::new(roots)
    }
}

fn failed(method: &'static str, error: RpcError) -> Error {
    Error::Local {
        method,
        error: Box::new(error),
    }
}
