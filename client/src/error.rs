//! What can go wrong for a client, sorted by who can do something about it.

use std::time::Duration;

use acp_sdk::v1::{ErrorCode, ProtocolVersion, SessionId};

use crate::process::Exit;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a client's call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent's command could not be started.
    #[error("cannot start the agent `{command}`: {reason}")]
    Spawn {
        /// The command line.
        command: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The agent's process ended while a call was pending, or before it was made.
    #[error("the agent `{command}` {exit} during {method}{}", last_words(.stderr))]
    AgentExited {
        /// The command line.
        command: String,
        /// The method that was called.
        method: String,
        /// How the process ended.
        exit: Exit,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// The agent did not answer in time.
    #[error("the agent did not answer {method} within {} s", .limit.as_secs_f32())]
    Timeout {
        /// The method that was called.
        method: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The agent speaks another version of the protocol; the connection was closed.
    #[error("the agent speaks protocol version {agent}, this client version {client}")]
    Version {
        /// What was offered.
        client: ProtocolVersion,
        /// What the agent answered.
        agent: ProtocolVersion,
    },
    /// The agent wants to know who it works for first (code -32000).
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/authentication>
    #[error("{method}: authentication is required{}", offers(.offered))]
    AuthenticationRequired {
        /// The method that was called.
        method: String,
        /// Id and name of each authentication method that the agent offers.
        offered: Vec<(String, String)>,
    },
    /// The agent does not declare the capability that a call needs; nothing was sent.
    #[error("the agent does not support {what}: its capability {capability} is not set")]
    Unsupported {
        /// The method or kind of content.
        what: String,
        /// Where the capability would stand in the answer to `initialize`.
        capability: &'static str,
    },
    /// A session takes one prompt at a time; nothing was sent.
    #[error("session {session} is still answering the last prompt: cancel it or await its end")]
    TurnRunning {
        /// The session.
        session: SessionId,
    },
    /// The working directory of a session is not usable.
    #[error("cannot use {path} as a working directory: {reason}")]
    Directory {
        /// As it was given.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The agent answered with an error, or the connection failed.
    #[error(transparent)]
    Sdk(#[from] acp_sdk::Error),
}

impl Error {
    /// The code of the error object that the agent answered with.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sdk(error) => error.code(),
            Self::AuthenticationRequired { .. } => Some(ErrorCode::AUTHENTICATION_REQUIRED),
            _ => None,
        }
    }
}

fn last_words(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return "; it wrote nothing to standard error".to_owned();
    }
    let mut text = "; its standard error ends with:".to_owned();
    for line in stderr {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

fn offers(methods: &[(String, String)]) -> String {
    if methods.is_empty() {
        return " and the agent offers no method for it".to_owned();
    }
    let mut text = "; the agent offers:".to_owned();
    for (id, name) in methods {
        text.push_str(&format!("\n  {id}: {name}"));
    }
    text
}
