//! Agents that speak another protocol, behind a translation into ACP.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::group::ProcessEnd;
use super::pipe::{AgentInput, AgentOutput};

/// Capacity in bytes between the adapter and the client, in each direction.
const CAPACITY: usize = 64 << 10;

/// What the client sends, and what it receives.
type ClientStreams = (DuplexStream, DuplexStream);

type Adapting = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What translates between an agent and a client of ACP.
#[derive(Clone)]
pub(super) struct Adapter(Arc<dyn Fn(ForeignAgent, ClientStreams) -> Adapting + Send + Sync>);

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Adapter")
    }
}

impl Adapter {
    pub(super) fn new<F>(
        adapt: impl Fn(ForeignAgent, ClientStreams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |agent, client| {
            Box::pin(adapt(agent, client))
        }))
    }

    /// Starts the translation, and returns the streams of an agent that speaks ACP.
    pub(super) fn start(&self, agent: ForeignAgent) -> (AgentOutput, AgentInput) {
        // One for each direction, because dropping one half of a stream does not close it.
        let (output, writer) = tokio::io::duplex(CAPACITY);
        let (input, reader) = tokio::io::duplex(CAPACITY);
        tokio::spawn((self.0)(agent, (reader, writer)));
        (AgentOutput::adapted(output), AgentInput::adapted(input))
    }
}

/// The process of an agent that speaks another protocol, for [`AgentCommand::adapter`](crate::AgentCommand::adapter).
#[derive(Debug)]
pub struct ForeignAgent {
    pub(super) output: AgentOutput,
    pub(super) input: AgentInput,
    pub(super) end: ProcessEnd,
}

impl ForeignAgent {
    /// Returns the agent's standard output and input, and what ends its process.
    #[must_use]
    pub fn into_parts(self) -> (AgentOutput, AgentInput, ProcessEnd) {
        (self.output, self.input, self.end)
    }
}
