//! What is at the other end of a connection to the agent: a process of this machine, or a server.

use acp_client::AgentProcess;
#[cfg(feature = "remote")]
use acp_client::internal::PersistentConnection;
use acp_client::internal::ProcessTree;
use acp_sdk::{CloseReason, Transport};

use super::HostedError;
use super::builder::Spec;
use super::stderr::printable;

/// The other end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    /// The command or the URL.
    name: String,
    end: End,
}

#[derive(Debug)]
enum End {
    Process(Box<AgentProcess>),
    #[cfg(feature = "remote")]
    Server(PersistentConnection),
}

impl Link {
    /// Starts a process, or connects to the server.
    pub(super) async fn open(spec: &Spec) -> Result<(Self, Transport), HostedError> {
        #[cfg(feature = "remote")]
        if let Some(agent) = spec.url() {
            let name = agent.url();
            let opened = PersistentConnection::open(agent).await;
            let (end, transport) =
                opened.map_err(|error| HostedError::Connect(error.to_string()))?;
            let end = End::Server(end);
            return Ok((Self { name, end }, transport.into()));
        }
        let spawned = spec.command().spawn();
        let mut process = spawned.map_err(|error| HostedError::Spawn(error.to_string()))?;
        let name = process.command().to_owned();
        let streams = process.take_streams();
        let streams =
            streams.ok_or_else(|| HostedError::Spawn(format!("`{name}` has no streams")))?;
        let end = End::Process(Box::new(process));
        Ok((Self { name, end }, streams.into()))
    }

    /// The command or the URL.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the processes of a command.
    pub(super) fn tree(&self) -> Option<ProcessTree> {
        match &self.end {
            End::Process(process) => Some(process.tree()),
            #[cfg(feature = "remote")]
            End::Server(_) => None,
        }
    }

    /// Waits for the reason of the end, if there will be one besides that of the transport.
    pub(super) fn explain_close(
        &self,
    ) -> Option<impl Future<Output = CloseReason> + Send + 'static> {
        match &self.end {
            End::Process(process) => Some(process.explain_close()),
            #[cfg(feature = "remote")]
            End::Server(_) => None,
        }
    }

    /// Describes the end.
    pub(super) async fn ended_text(&self, reason: &CloseReason) -> String {
        let name = &self.name;
        let failure = match &self.end {
            End::Process(process) => process.exit().map(|exit| format!("`{name}` {exit}")),
            #[cfg(feature = "remote")]
            End::Server(server) => server.failure().map(|error| error.to_string()),
        };
        let what = failure.unwrap_or_else(|| format!("`{name}`: {reason}"));
        printable(&what) + &self.last_lines().await
    }

    /// The last lines of standard error, for the end of a sentence.
    pub(super) async fn last_lines(&self) -> String {
        const LINES: usize = 5;
        const CHARACTERS: usize = 300;
        let lines = match &self.end {
            End::Process(process) => process.stderr_tail().await,
            #[cfg(feature = "remote")]
            End::Server(_) => Vec::new(),
        };
        let from = lines.len().saturating_sub(LINES);
        let lines: Vec<String> = lines[from..]
            .iter()
            .map(|line| printable(line).chars().take(CHARACTERS).collect())
            .collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!("; its last lines: {}", lines.join(" | ")),
        }
    }

    /// Ends it at once.
    pub(super) async fn terminate(&self) {
        match &self.end {
            End::Process(process) => {
                process.terminate().await;
            }
            #[cfg(feature = "remote")]
            End::Server(server) => server.closed().await,
        }
    }

    /// Waits until it has ended, after the connection was closed.
    pub(super) async fn await_end(&self) {
        match &self.end {
            End::Process(process) => {
                process.await_end().await;
            }
            #[cfg(feature = "remote")]
            End::Server(server) => server.closed().await,
        }
    }
}
