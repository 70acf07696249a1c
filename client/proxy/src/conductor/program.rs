//! The programs of a chain, and who has ended it.

use std::sync::Arc;
use std::time::Duration;

use acp_client::{AgentCommand, AgentProcess};
use acp_sdk::Transport;
use acp_sdk::limits::MAX_MESSAGE_BYTES;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{ConductorError, Messages};
use crate::link::{Joined, Link, LinkEnd, Place};
use crate::relay::Explain;

/// How long the end of a chain waits for who has caused it.
const CAUSE_LIMIT: Duration = Duration::from_secs(3);

pub(super) fn start(
    command: AgentCommand,
) -> Result<(Arc<AgentProcess>, Transport), ConductorError> {
    let mut process = command.end_with_host().spawn()?;
    let streams = process.take_streams();
    let transport = match streams {
        Some((output, input)) => Transport::stream(output, input),
        // Nobody else has taken them.
        None => Transport::stream(tokio::io::empty(), tokio::io::sink()),
    };
    Ok((Arc::new(process), transport))
}

/// Who has ended a chain.
#[derive(Clone)]
pub(super) struct Cause(watch::Sender<Option<String>>);

impl Default for Cause {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Cause {
    /// Sets the cause; the first one counts.
    pub(super) fn set(&self, reason: &str) {
        self.0.send_if_modified(|cause| {
            let is_first = cause.is_none();
            if is_first {
                *cause = Some(reason.to_owned());
            }
            is_first
        });
    }

    /// Says what another part has set.
    pub(super) fn explain(&self) -> Explain {
        let mut cause = self.0.subscribe();
        Box::new(move |_| {
            Box::pin(async move {
                let set = timeout(CAUSE_LIMIT, cause.wait_for(Option::is_some)).await;
                let cause = set.ok().and_then(|set| set.ok()?.clone());
                cause.unwrap_or_else(|| "the next part of the chain has ended".to_owned())
            })
        })
    }

    /// Says how the agent has ended.
    pub(super) fn of_agent(&self, process: &Arc<AgentProcess>) -> Explain {
        let (cause, process) = (self.clone(), process.clone());
        Box::new(move |_| {
            Box::pin(async move {
                let reason = process.explain_close().await.to_string();
                cause.set(&reason);
                reason
            })
        })
    }
}

/// A program that is a part of a chain.
pub(super) struct Program {
    name: String,
    process: Arc<AgentProcess>,
    transport: Transport,
    limit: Duration,
}

impl Program {
    pub(super) fn start(command: AgentCommand, limit: Duration) -> Result<Self, ConductorError> {
        let name = command.to_string();
        let (process, transport) = start(command)?;
        Ok(Self {
            name,
            process,
            transport,
            limit,
        })
    }

    /// Runs until the program, or what is next to it, has ended.
    pub(super) async fn run(self, [near, far]: [Messages; 2], cause: Cause, explain_far: Explain) {
        let (name, limit) = (self.name, self.limit);
        let joined = self.transport.into_messages(MAX_MESSAGE_BYTES);
        let mut link = Link::new(Joined::Component { name, limit }, [near, far, joined]);
        let near_ended = link.near_ended();
        let process = self.process;
        let ending = async {
            near_ended.cancelled().await;
            process.await_end().await;
        };
        let running = async {
            match link.run().await {
                (LinkEnd::Ended(Place::Joined), false) => {
                    cause.set(&process.explain_close().await.to_string());
                }
                (LinkEnd::Ended(Place::Far), false) => cause.set(&explain_far(None).await),
                (LinkEnd::Unusable(reason), _) => cause.set(&reason),
                _ => {}
            }
            // Now, for the others end with it, and would be taken for the cause.
            link.close().await;
        };
        tokio::join!(running, ending);
    }
}
