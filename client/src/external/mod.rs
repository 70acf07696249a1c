//! An agent as a tool of another program: takes a task and returns a result.
//!
//! For agents that delegate to other agents, and for programs that need a single result. Each call
//! has its own session, so calls are independent and may run concurrently. Dropping the future of a
//! call cancels it and closes its session.

mod call;
mod event;
mod forward;
mod lifetime;
mod restarts;
mod result;
mod retry;
mod session;
mod slot;
mod supervisor;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

pub use self::call::Call;
pub use self::event::{ExternalAgentEvent, ExternalAgentEventKind};
pub use self::forward::Forward;
use self::lifetime::{Use, Users};
use self::restarts::RestartLimit;
pub use self::result::{TaskMetadata, TaskResult};
use self::slot::Slot;
pub use self::supervisor::Supervisor;
use crate::client::Client;
use crate::error::Result;
use crate::session::Prompt;

/// Capacity of the event channel; see [`ExternalAgent::subscribe`].
const EVENTS_KEPT: usize = 256;

/// The default number of concurrent calls.
const MAX_CONCURRENT: usize = 8;

/// An agent as a tool, with name, description, input schema and a call.
///
/// The first call or [`setup`](Self::setup) starts the agent; after its process has died, the next
/// call restarts it. Clones share the agent.
///
/// ```no_run
/// use std::time::Duration;
///
/// use acp_client::{AgentCommand, Client, ExternalAgent, Policy, Workspace};
///
/// # async fn example() -> acp_client::Result<()> {
/// let reviewer = ExternalAgent::start_with(|| async {
///     Client::builder()
///         .workspace(Workspace::new())
///         .permissions(Policy::ApproveReads)
///         .spawn(AgentCommand::new("opencode").arg("acp"))
///         .await
/// })
/// .name("reviewer")
/// .description("Reviews changes of this project.")
/// .directory("/project")
/// .timeout(Duration::from_secs(300));
/// let review = reviewer.call("Review the last commit.").await?;
/// println!("{review} ({} tool calls)", review.metadata.tool_calls.len());
/// reviewer.cleanup().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ExternalAgent {
    slot: Slot,
    permits: Arc<Semaphore>,
    events: broadcast::Sender<ExternalAgentEvent>,
    calls: Arc<AtomicU64>,
    users: Arc<Users>,
    /// Cancels all calls.
    parent: CancellationToken,
    config: Arc<Config>,
}

#[derive(Debug, Clone)]
struct Config {
    name: String,
    description: String,
    directory: PathBuf,
    timeout: Option<Duration>,
    idle: Option<Duration>,
    restarts: Option<RestartLimit>,
    retries: usize,
}

/// The input of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    /// The task for the agent.
    pub task: String,
}

impl From<TaskInput> for Prompt {
    fn from(input: TaskInput) -> Self {
        input.task.into()
    }
}

impl ExternalAgent {
    /// Uses an agent that a client is connected to. It is not restarted.
    pub fn new(client: Client) -> Self {
        Self::with_slot(Slot::Connected(client))
    }

    /// Uses a function that connects to the agent, on the first call and after the agent has died.
    pub fn start_with<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client>> + Send + 'static,
    {
        Self::with_slot(Slot::connecting(connect))
    }

    fn with_slot(slot: Slot) -> Self {
        Self {
            slot,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            events: broadcast::Sender::new(EVENTS_KEPT),
            calls: Arc::default(),
            users: Arc::default(),
            parent: CancellationToken::new(),
            config: Arc::new(Config {
                name: "agent".to_owned(),
                description: "Delegates a task to another agent. It has no access to this \
                conversation: the task must contain all required information."
                    .to_owned(),
                directory: PathBuf::from("."),
                timeout: None,
                idle: None,
                restarts: None,
                retries: 0,
            }),
        }
    }

    fn configure(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }

    /// Sets the name of the tool (default `agent`).
    pub fn name(self, name: impl Into<String>) -> Self {
        self.configure(|config| config.name = name.into())
    }

    /// Sets the description of the tool, which models read.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.configure(|config| config.description = description.into())
    }

    /// Sets the working directory of sessions (default: the current one). A call can override it.
    pub fn directory(self, directory: impl AsRef<Path>) -> Self {
        self.configure(|config| config.directory = directory.as_ref().to_owned())
    }

    /// Sets the timeout of a call (default: unlimited).
    ///
    /// It includes the wait for a concurrent call to end, for the agent to start and for the session.
    /// On timeout the turn is cancelled; the result has the output so far and `timed_out`. A call whose
    /// turn has not started fails.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.configure(|config| config.timeout = Some(timeout))
    }

    /// Sets the maximum number of concurrent calls, at least 1 (default 8).
    ///
    /// Further calls wait in order. A call ends when its session is closed.
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        let permits = calls.clamp(1, Semaphore::MAX_PERMITS);
        self.permits = Arc::new(Semaphore::new(permits));
        self
    }

    /// Sets the maximum number of further attempts of a call to start the agent and to open its session
    /// (default 0).
    ///
    /// The pauses between them grow from 250 ms to 15 s; the [`timeout`](Self::timeout) includes them. An
    /// attempt is repeated only where that has no second effect: the agent could not be started or
    /// reached, its process has ended, or it has answered that it failed. A `session/new` without an
    /// answer and a prompt are never sent twice. In any case, an agent whose process has died is restarted
    /// once per call.
    pub fn retries(self, retries: usize) -> Self {
        self.configure(|config| config.retries = retries)
    }

    /// Shuts the agent down when no call has used it for this time (default: never). The next call
    /// starts it again.
    pub fn idle_timeout(self, timeout: Duration) -> Self {
        self.configure(|config| config.idle = Some(timeout))
    }

    /// Sets the maximum number of restarts after failures within a time (default: unlimited).
    ///
    /// Further calls fail with [`Error::RestartLimit`](crate::Error::RestartLimit) until the oldest of
    /// these restarts is longer ago. Starts after an [idle time](Self::idle_timeout) do not count.
    pub fn max_restarts(self, restarts: usize, within: Duration) -> Self {
        let limit = RestartLimit {
            most: restarts,
            within,
        };
        self.configure(|config| config.restarts = Some(limit))
    }

    /// Cancels all calls when this token is cancelled, and closes their sessions.
    ///
    /// For an agent that delegates: the token of its turn, or of its session. Later calls fail with
    /// [`Error::CallCancelled`](crate::Error::CallCancelled). Applies to this value and its clones from now
    /// on.
    pub fn closed_with(mut self, parent: CancellationToken) -> Self {
        self.parent = parent;
        self
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        &self.config.name
    }

    /// Returns the description of the tool.
    #[must_use]
    pub fn tool_description(&self) -> &str {
        &self.config.description
    }

    /// Returns the JSON Schema of [`TaskInput`].
    #[must_use]
    pub fn input_schema(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "description": "The task, with all information that the agent needs.",
                    "minLength": 1
                }
            },
            "required": ["task"],
            "additionalProperties": false
        })
    }

    /// Returns a receiver of the events of all calls from now on.
    ///
    /// A receiver that lags by more than 256 events loses the oldest and receives their number. It
    /// never delays a call.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<ExternalAgentEvent> {
        self.events.subscribe()
    }

    /// Starts the agent if it is not running. The first call does the same.
    ///
    /// # Errors
    ///
    /// Fails with the error of the connecting function. With an agent from [`new`](Self::new) it does
    /// nothing.
    pub async fn setup(&self) -> Result<()> {
        let _use = self.begin_use();
        self.slot.client(self.config.restarts).await.map(drop)
    }

    fn begin_use(&self) -> Use {
        Use::begin(self.users.clone(), self.slot.clone(), self.config.idle)
    }

    /// Creates a call with a task. The call starts when it is awaited.
    pub fn call(&self, task: impl Into<Prompt>) -> Call {
        Call::new(self.clone(), task.into())
    }

    /// Shuts the agent down. Calls in progress fail; the next call restarts it if possible.
    pub async fn cleanup(&self) {
        if let Some(client) = self.slot.take().await {
            client.shutdown().await;
        }
    }
}
