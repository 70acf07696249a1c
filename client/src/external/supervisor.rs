//! Several agents that end together.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ExternalAgent;

/// The time that a shutdown waits for cancelled calls.
const CALLS: Duration = Duration::from_secs(15);

/// Owns several agents: each is started by its first call, and all end together.
///
/// Dropping the last clone cancels all calls and closes their sessions; the agents end when they are
/// dropped, too. [`ExternalAgent::idle_timeout`] ends an agent that nobody uses, and
/// [`ExternalAgent::max_restarts`] bounds its restarts.
///
/// ```no_run
/// use std::time::Duration;
///
/// use acp_client::{AgentCommand, Client, ExternalAgent, Supervisor};
///
/// # async fn example() -> acp_client::Result<()> {
/// let agent = |name: &'static str| {
///     let start = move || Client::builder().spawn(AgentCommand::new(name).arg("acp"));
///     ExternalAgent::start_with(start)
///         .name(name)
///         .idle_timeout(Duration::from_secs(300))
///         .max_restarts(5, Duration::from_secs(60))
///         .retries(3)
/// };
/// let agents = Supervisor::new([agent("opencode"), agent("goose")]);
/// if let Some(reviewer) = agents.get("goose") {
///     println!("{}", reviewer.call("Review the last commit.").await?);
/// }
/// agents.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Supervisor {
    agents: Arc<[ExternalAgent]>,
    /// Cancels the calls when the last clone is dropped.
    _closing: Arc<DropGuard>,
}

impl Supervisor {
    /// Takes agents, which have different names. It replaces their [`closed_with`](ExternalAgent::closed_with).
    pub fn new(agents: impl IntoIterator<Item = ExternalAgent>) -> Self {
        let closing = CancellationToken::new();
        let agents = agents.into_iter();
        let agents = agents.map(|agent| agent.closed_with(closing.clone()));
        Self {
            agents: agents.collect(),
            _closing: Arc::new(closing.drop_guard()),
        }
    }

    /// Returns the agents in the order in which they were given.
    pub fn agents(&self) -> &[ExternalAgent] {
        &self.agents
    }

    /// Returns the agent with this [name](ExternalAgent::tool_name).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ExternalAgent> {
        self.agents.iter().find(|agent| agent.tool_name() == name)
    }

    /// Cancels all calls, waits up to 15 s until their sessions are closed, and shuts the agents down.
    ///
    /// Later calls fail with [`Error::CallCancelled`](crate::Error::CallCancelled).
    pub async fn shutdown(&self) {
        for agent in &*self.agents {
            agent.parent.cancel();
        }
        let calls = async {
            for agent in &*self.agents {
                agent.users.none().await;
            }
        };
        // After the limit, the calls fail.
        let _ = timeout(CALLS, calls).await;
        let mut ends = tokio::task::JoinSet::new();
        for agent in &*self.agents {
            let agent = agent.clone();
            ends.spawn(async move { agent.cleanup().await });
        }
        ends.join_all().await;
    }
}
