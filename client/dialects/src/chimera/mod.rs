//! Agents for Chimera's ACP client.

mod agent;
mod turns;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use acp_client::{AgentCommand, ProcessEnd};
use acp_dialects::chimera::{AgentHandle, ClientService};
use acp_sdk::{ChannelTransport, ConnectionBuilder, Transport, channel};

use self::agent::Agent;
use self::turns::Turns;
use self::updates::Updates;

/// Capacity in bytes between the adapter and the client, in each direction.
const CAPACITY: usize = 64 << 10;

/// Time for updates that a slow client has not read when the agent's output ends.
const UNREAD: Duration = Duration::from_secs(3600);

/// Drives agents for Chimera's ACP client: presents one as an agent of ACP version 1.
///
/// The agent gets one message at a time, because its notifications may name no session: a prompt of another
/// session waits. It is not asked for permissions and offered no files, terminals and MCP servers, for
/// which its protocol has no messages.
///
/// The protocol has no cancellation. Cancelling a turn ends the agent's process, and with it all sessions
/// and the connection of its client. An [`ExternalAgent`](acp_client::ExternalAgent) starts the agent again
/// with its next call, an agent with [`AgentCommand::restart`] at once. No history is left then. Other calls
/// of the `ExternalAgent` fail with the process; [`max_concurrent(1)`](acp_client::ExternalAgent::max_concurrent)
/// lets them wait before they use it.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Chimera {
    drain_delay: Duration,
}

impl Default for Chimera {
    fn default() -> Self {
        Self::new()
    }
}

impl Chimera {
    /// Creates the adapter with the defaults that each method states.
    pub fn new() -> Self {
        Self {
            drain_delay: Duration::from_millis(100),
        }
    }

    /// Sets how long a turn goes on after the agent's response, for notifications that follow it (default
    /// 100 ms). Later ones are events of the session, outside of its turns.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.drain_delay = delay;
        self
    }

    /// Returns the command with the adapter, for [`ClientBuilder::spawn`](acp_client::ClientBuilder::spawn).
    pub fn adapt(self, agent: AgentCommand) -> AgentCommand {
        agent.adapter(move |agent, client| async move {
            let (output, input, process) = agent.into_parts();
            let (agent, client) = ((output, input).into(), client.into());
            self.run(agent, Some(process), client).await;
        })
    }

    /// Connects to an agent through a transport, such as a pair `(reader, writer)` of streams, and returns
    /// the transport for [`ClientBuilder::connect`](acp_client::ClientBuilder::connect).
    ///
    /// Cancelling a turn closes the transport of the agent.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn connect(self, agent: impl Into<Transport>) -> ChannelTransport {
        let (near, far) = channel(CAPACITY);
        let agent = agent.into();
        tokio::spawn(async move { self.run(agent, None, far.into()).await });
        near
    }

    /// Translates until either side has closed.
    async fn run(self, agent: Transport, process: Option<ProcessEnd>, client: Transport) {
        let turns = Arc::new(Turns::default());
        let updates = Updates::new(turns.clone());
        let to_client = updates.client();
        let calling = ConnectionBuilder::new()
            .answer_invalid(false)
            .shutdown_timeout(UNREAD)
            .open(ClientService::new(updates), agent);
        let handle = AgentHandle::new(calling.peer().clone());
        let agent = Agent::new(handle, turns, process, self.drain_delay);
        let serving = ConnectionBuilder::new().agent(agent, client);
        // Before either connection runs.
        let _ = to_client.set(serving.handle().clone());
        let (mut calling, mut serving) = (calling.start(), serving.start());
        tokio::select! {
            ended = calling.closed() => {
                log(ended);
                // What the agent has sent is written out first.
                serving.peer().close_output();
                log(serving.closed().await);
            }
            ended = serving.closed() => {
                log(ended);
                log(calling.shutdown().await);
            }
        }
    }
}

fn log(ended: acp_sdk::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of an adapter failed");
    }
}
