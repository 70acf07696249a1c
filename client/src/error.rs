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
    #[error("the agent `{command}` {exit} during {method}{}{}", last_words(.stderr), said_after(.stderr, .noise))]
    AgentExited {
        /// The command line.
        command: String,
        /// The method that was called.
        method: String,
        /// How the process ended.
        exit: Exit,
        /// The last lines of its standard error.
        stderr: Vec<String>,
        /// The first lines of its standard output that were no messages.
        noise: Vec<String>,
    },
    /// The agent's process goes on, but it has closed its end of the connection.
    #[error(
        "the agent `{command}` closed its output during {method} and is still running{}{}",
        words_so_far(.stderr), said_after(.stderr, .noise)
    )]
    AgentHungUp {
        /// The command line.
        command: String,
        /// The method that was called.
        method: String,
        /// The last lines of its standard error so far.
        stderr: Vec<String>,
        /// The first lines of its standard output that were no messages.
        noise: Vec<String>,
    },
    /// The agent did not answer in time.
    #[error(
        "the agent did not answer {method} within {} s{}{}{}",
        .limit.as_secs_f32(), doubt(.method), words_so_far(.stderr), said_after(.stderr, .noise)
    )]
    Timeout {
        /// The method that was called.
        method: String,
        /// How long it was waited for.
        limit: Duration,
        /// The last lines of its standard error so far, if it was started for this client.
        stderr: Vec<String>,
        /// The first lines of its standard output that were no messages.
        noise: Vec<String>,
    },
    /// A cancelled turn did not end within [`cancel_within`](crate::ClientBuilder::cancel_within).
    #[error("the agent did not end the cancelled turn of session {session} within {} s", .limit.as_secs_f32())]
    NotCancelled {
        /// The session.
        session: SessionId,
        /// How long it was waited for.
        limit: Duration,
    },
    /// A call of an [`ExternalAgent`](crate::ExternalAgent) timed out before its turn began.
    #[error("the call of `{agent}` timed out after {} s, waiting for {waiting_for}", .limit.as_secs_f32())]
    CallTimeout {
        /// The agent's name.
        agent: String,
        /// The timeout of the call.
        limit: Duration,
        /// What it was waiting for.
        waiting_for: &'static str,
    },
    /// A call of an [`ExternalAgent`](crate::ExternalAgent) was cancelled before its turn began.
    #[error("the call of `{agent}` was cancelled before its turn began")]
    CallCancelled {
        /// The agent's name.
        agent: String,
    },
    /// The task that awaits the agent's answer is gone, as when its runtime is shut down.
    #[error("the turn was dropped before the agent answered")]
    TurnLost,
    /// A session is opened that is open already; or the agent gives two sessions the same id.
    #[error("session {session} is open already")]
    SessionOpen {
        /// The session.
        session: SessionId,
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
    #[error("the agent wants you to authenticate before {method}{}", offers(.offered))]
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
    /// The protocol version of the connection has no such thing; nothing was sent.
    #[error("protocol version {version} has no {what}{}", remedy(.instead.as_deref()))]
    NotInVersion {
        /// The method or kind of content.
        what: String,
        /// The version of the connection.
        version: ProtocolVersion,
        /// What to do instead, if there is something.
        instead: Option<String>,
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
    /// The remote agent cannot be reached, or the connection to it was lost.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Remote(#[from] crate::remote::RemoteError),
    /// The agent's process has ended, and it could not be started again.
    #[error("the agent `{command}` has ended and could not be started again: {reason}")]
    NotRestarted {
        /// The command line.
        command: String,
        /// Why the last attempt failed.
        reason: String,
    },
    /// The connection was lost before the answer came. It is open again.
    #[error("{method} has no answer: {reason}")]
    ConnectionLost {
        /// The method that was called.
        method: String,
        /// What is known of its fate.
        reason: String,
    },
    /// The client for programs without async cannot be used.
    #[cfg(feature = "blocking")]
    #[error("the blocking client cannot be used: {reason}")]
    Blocking {
        /// Why not.
        reason: String,
    },
    /// The agent answered with an error, or the connection failed.
    #[error(transparent)]
    Sdk(#[from] acp_sdk::Error),
}

impl Error {
    pub(crate) fn unsupported(what: &str, capability: &'static str) -> Self {
        Self::Unsupported {
            what: what.to_owned(),
            capability,
        }
    }

    #[cfg(feature = "v2")]
    pub(crate) fn not_in_v2(what: &str, instead: Option<&str>) -> Self {
        Self::NotInVersion {
            what: what.to_owned(),
            version: ProtocolVersion::from(2),
            instead: instead.map(str::to_owned),
        }
    }

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

impl Error {
    /// Returns whether another attempt to connect may succeed.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Spawn { .. } | Self::AgentExited { .. } | Self::AgentHungUp { .. } => true,
            Self::Timeout { .. } => true,
            #[cfg(feature = "remote")]
            Self::Remote(error) => error.is_temporary(),
            _ => false,
        }
    }

    /// Returns what happened to the agent, without the method that was called then.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::AgentExited {
                command,
                exit,
                stderr,
                ..
            } => format!("the agent `{command}` {exit}{}", last_words(stderr)),
            Self::AgentHungUp { command, .. } => {
                format!("the agent `{command}` closed its output")
            }
            other => other.to_string(),
        }
    }

    /// Adds to the end of an agent's process what was called then, and what it had written to its
    /// standard output besides messages.
    pub(crate) fn during(mut self, called: &str, lines: Vec<String>) -> Self {
        if let Self::AgentExited { method, noise, .. } | Self::AgentHungUp { method, noise, .. } =
            &mut self
        {
            called.clone_into(method);
            *noise = lines;
        }
        self
    }
}

fn last_words(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return "; it wrote nothing to standard error".to_owned();
    }
    indented("; its standard error ends with:", stderr)
}

fn remedy(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; {instead}"))
}

/// Of an agent that goes on, and may have written nothing because nothing is wrong with it.
fn words_so_far(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    last_words(stderr)
}

/// Whoever does not even say hello may be something else.
fn doubt(method: &str) -> &'static str {
    match method {
        "initialize" => " (is it an agent of this protocol?)",
        _ => "",
    }
}

fn said(noise: &[String]) -> String {
    if noise.is_empty() {
        return String::new();
    }
    indented("; what it wrote to standard output is no message:", noise)
}

fn said_after(stderr: &[String], noise: &[String]) -> String {
    if stderr.is_empty() || noise.is_empty() {
        return said(noise);
    }
    indented("\nand its standard output, besides messages, had:", noise)
}

fn offers(methods: &[(String, String)]) -> String {
    if methods.is_empty() {
        return ", and offers no method for it".to_owned();
    }
    let lines = methods.iter().map(|(id, name)| format!("{id}: {name}"));
    indented("; it offers:", &lines.collect::<Vec<_>>())
}

/// A heading and the lines below it, each line on its own.
fn indented(heading: &str, lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("\n  {line}"));
    std::iter::once(heading.to_owned()).chain(lines).collect()
}
