//! An agent as a tool of another program: a task goes in, a result comes out.
//!
//! For agents that delegate to other agents, and for programs that need one answer. Each call has a
//! session of its own, so calls do not see each other and may run at the same time. A call whose
//! future is dropped, at whatever moment, is cancelled, and its session is closed.

mod call;
mod event;
mod forward;
mod place;
mod result;
mod slot;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, broadcast};

pub use self::call::Call;
pub use self::event::{ExternalAgentEvent, ExternalAgentEventKind};
pub use self::forward::Forward;
pub use self::result::{TaskMetadata, TaskResult};
use self::slot::Slot;
use crate::client::Client;
use crate::error::Result;
use crate::session::Prompt;

/// Events that are kept for receivers that lag; see [`ExternalAgent::subscribe`].
const EVENTS_KEPT: usize = 256;

/// Calls that run at the same time, unless the application says otherwise.
const MAX_CONCURRENT: usize = 8;

/// An agent that does tasks, in the form of a tool: name, description, input schema and a call.
///
/// The agent is started by the first call, or by [`setup`](Self::setup), and again by the next call
/// when its process has died. Clones are the same agent.
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
    places: Arc<Semaphore>,
    events: broadcast::Sender<ExternalAgentEvent>,
    calls: Arc<AtomicU64>,
    config: Arc<Config>,
}

#[derive(Debug, Clone)]
struct Config {
    name: String,
    description: String,
    directory: PathBuf,
    timeout: Option<Duration>,
}

/// The input of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    /// What the agent is to do.
    pub task: String,
}

impl From<TaskInput> for Prompt {
    fn from(input: TaskInput) -> Self {
        input.task.into()
    }
}

impl ExternalAgent {
    /// Uses an agent that a client is connected to. It is not started again when it has died.
    pub fn new(client: Client) -> Self {
        Self::with_slot(Slot::Connected(client))
    }

    /// Connects to the agent by this function: when it is called first, and when it has died.
    pub fn start_with<F>(connect: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client>> + Send + 'static,
    {
        Self::with_slot(Slot::connecting(connect))
    }

    fn with_slot(slot: Slot) -> Self {
        Self {
            slot,
            places: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            events: broadcast::Sender::new(EVENTS_KEPT),
            calls: Arc::default(),
            config: Arc::new(Config {
                name: "agent".to_owned(),
                description: "Has a task done by another agent. It knows nothing of this \
                    conversation: the task must say all that it needs."
                    .to_owned(),
                directory: PathBuf::from("."),
                timeout: None,
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

    /// Sets what the tool is for, in words for a model.
    pub fn description(self, description: impl Into<String>) -> Self {
        self.configure(|config| config.description = description.into())
    }

    /// Sets the directory of the sessions (default: the current one). A call can have another.
    pub fn directory(self, directory: impl AsRef<Path>) -> Self {
        self.configure(|config| config.directory = directory.as_ref().to_owned())
    }

    /// Sets how long a call may take, including the wait for a place, for the agent to start and
    /// for its session (default: unlimited). The turn is cancelled then: the result has what there is so
    /// far, and says that it timed out. A call that has no turn yet fails.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.configure(|config| config.timeout = Some(timeout))
    }

    /// Sets how many calls run at the same time, at least 1 (default 8). Others wait for a place, in
    /// order. A place is free when the session of its call is closed.
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        let places = calls.clamp(1, Semaphore::MAX_PERMITS);
        self.places = Arc::new(Semaphore::new(places));
        self
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn tool_name(&self) -> &str {
        &self.config.name
    }

    /// Returns what the tool is for.
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
                    "description": "The task, with everything that the agent needs to know.",
                    "minLength": 1
                }
            },
            "required": ["task"],
            "additionalProperties": false
        })
    }

    /// Returns a receiver of the events of all calls from now on. A receiver that lags by more than
    /// 256 events loses the oldest and receives their number; it never delays a call.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<ExternalAgentEvent> {
        self.events.subscribe()
    }

    /// Starts the agent, if it does not run. The first call does the same.
    ///
    /// # Errors
    ///
    /// As the function that connects; an agent that was connected to in the beginning is left as it
    /// is.
    pub async fn setup(&self) -> Result<()> {
        self.slot.client().await.map(drop)
    }

    /// Has a task done. The call begins when it is awaited.
    pub fn call(&self, task: impl Into<Prompt>) -> Call {
        Call::new(self.clone(), task.into())
    }

    /// Ends the agent. Calls in progress fail; the next call starts it again, where it can.
    pub async fn cleanup(&self) {
        if let Some(client) = self.slot.take().await {
            client.shutdown().await;
        }
    }
}
