//! Why a hosted agent cannot be used.

use acp_sdk::HandlerError;
use std::time::Duration;

/// Why a hosted agent cannot be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostedError {
    /// The command cannot be started.
    #[error("{0}")]
    Spawn(String),
    /// The server that has the agent cannot be reached, or refuses the connection.
    #[error("{0}")]
    Connect(String),
    /// Options of a command were set for an agent at a URL.
    #[error("an agent at a URL has no {what}: its server starts it")]
    NotForUrl {
        /// The option.
        what: &'static str,
    },
    /// The process ended, or broke the protocol, before it had answered `initialize`.
    #[error("the agent cannot be used: {0}")]
    Ended(String),
    /// The process did not answer `initialize` in time.
    #[error("`{command}` did not answer initialize within {after:?}{stderr}")]
    TimedOut {
        /// The command.
        command: String,
        /// The limit.
        after: Duration,
        /// The last lines of standard error, if there are any.
        stderr: String,
    },
    /// The agent refused `initialize`.
    #[error("`{command}` refused initialize: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// Its error.
        reason: String,
    },
    /// The agent uses another version of the protocol.
    #[error("`{command}` uses version {version} of the protocol, which cannot be hosted here")]
    Version {
        /// The command.
        command: String,
        /// The version in its answer.
        version: u16,
    },
    /// It has failed too often, and is not started now.
    #[error(
        "the agent failed {failures} times in a row, and is started again in {wait:?} at the earliest. The last failure: {last}"
    )]
    Failing {
        /// Failures in a row.
        failures: u32,
        /// Time until the next attempt.
        wait: Duration,
        /// The last failure.
        last: String,
    },
    /// There are as many processes as the limit permits.
    #[error("{limit} processes of the agent run, which is the limit; close a session first")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// The agent was shut down.
    #[error("the agent was shut down; a new server and agent can open its sessions again")]
    ShutDown,
}

impl HostedError {
    /// Returns the answer to a request that needs a process.
    pub(super) fn answer(self) -> HandlerError {
        match self {
            Self::Full { .. } => acp_server::Error::Full(self.to_string()).into(),
            other => other.into(),
        }
    }
}
