//! The errors of this crate.

use std::time::Duration;

use acp_sdk::v1::{ErrorCode, ProtocolVersion, SessionId};

use crate::exit::Exit;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a client call.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent's command could not be started.
    #[error("cannot start the agent `{command}`: {reason}")]
    Spawn {
        /// The command line.
        command: String,
        /// The cause and a remedy.
        reason: String,
    },
    /// The agent's process exited before or during a call.
    #[error("the agent `{command}` {exit} during {method}{}{}", stderr_tail(.stderr), stray_output_after(.stderr, .stray_output))]
    AgentExited {
        /// The command line.
        command: String,
        /// The method in flight.
        method: String,
        /// The exit status of the process.
        exit: Exit,
        /// The last lines of its standard error.
        stderr: Vec<String>,
        /// The first lines of its standard output that are not messages.
        stray_output: Vec<String>,
    },
    /// The agent's process is running, but has closed its standard output.
    #[error(
        "the agent `{command}` closed its output during {method} and is still running{}{}",
        stderr_so_far(.stderr), stray_output_after(.stderr, .stray_output)
    )]
    AgentHungUp {
        /// The command line.
        command: String,
        /// The method in flight.
        method: String,
        /// The last lines of its standard error so far.
        stderr: Vec<String>,
        /// The first lines of its standard output that are not messages.
        stray_output: Vec<String>,
    },
    /// The agent did not answer within the timeout.
    #[error(
        "the agent did not answer {method} within {} s{}{}{}",
        .limit.as_secs_f32(), hint(.method), stderr_so_far(.stderr), stray_output_after(.stderr, .stray_output)
    )]
    Timeout {
        /// The method in flight.
        method: String,
        /// The timeout.
        limit: Duration,
        /// The last lines of its standard error so far; empty for a remote agent.
        stderr: Vec<String>,
        /// The first lines of its standard output that are not messages.
        stray_output: Vec<String>,
    },
    /// A cancelled turn did not end within [`cancel_within`](crate::ClientBuilder::cancel_within).
    #[error("the agent did not end the cancelled turn of session {session} within {} s", .limit.as_secs_f32())]
    NotCancelled {
        /// The session.
        session: SessionId,
        /// The timeout.
        limit: Duration,
    },
    /// A call of an [`ExternalAgent`](crate::ExternalAgent) timed out before its turn began.
    #[error("the call of `{agent}` timed out after {} s, waiting for {waiting_for}", .limit.as_secs_f32())]
    CallTimeout {
        /// The agent's name.
        agent: String,
        /// The timeout of the call.
        limit: Duration,
        /// The step that was pending.
        waiting_for: &'static str,
    },
    /// A call of an [`ExternalAgent`](crate::ExternalAgent) was cancelled before its turn began.
    #[error("the call of `{agent}` was cancelled before its turn began")]
    CallCancelled {
        /// The agent's name.
        agent: String,
    },
    /// An agent was restarted too often, see [`ExternalAgent::max_restarts`](crate::ExternalAgent::max_restarts).
    #[error("the agent was restarted {restarts} times within {} s and failed each time; it is not started again now", .within.as_secs_f32())]
    RestartLimit {
        /// The number of restarts.
        restarts: usize,
        /// The time within which they were made.
        within: Duration,
    },
    /// The connection has ended, and what it was made of says why.
    #[error("{reason}")]
    Ended {
        /// The reason.
        reason: String,
    },
    /// The task of the turn was dropped, as when its runtime shuts down.
    #[error("the turn was dropped before the agent answered")]
    TurnLost,
    /// The session is already open, or the agent returned the id of an open session.
    #[error("session {session} is already open")]
    SessionOpen {
        /// The session.
        session: SessionId,
    },
    /// The agent answered another protocol version. The connection was closed.
    #[error("unsupported protocol version: expected {client}, the agent answered {agent}")]
    Version {
        /// The offered version.
        client: ProtocolVersion,
        /// The version in the agent's response.
        agent: ProtocolVersion,
    },
    /// The agent requires authentication (code -32000).
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/authentication>
    #[error("the agent requires authentication before {method}{}", auth_methods(.offered))]
    AuthenticationRequired {
        /// The rejected method.
        method: String,
        /// The id and name of each authentication method that the agent offers.
        offered: Vec<(String, String)>,
    },
    /// The agent lacks a capability that the call requires. Nothing was sent.
    #[error("the agent does not support {what}: its capability {capability} is not set")]
    Unsupported {
        /// The method or kind of content.
        what: String,
        /// The path of the capability in the response to `initialize`.
        capability: &'static str,
    },
    /// The protocol version of the connection lacks a feature. Nothing was sent.
    #[error("protocol version {version} has no {what}{}", remedy(.instead.as_deref()))]
    NotInVersion {
        /// The method or kind of content.
        what: String,
        /// The version of the connection.
        version: ProtocolVersion,
        /// The replacement, if there is one.
        instead: Option<String>,
    },
    /// The agent does not ask before its tool calls in the mode of the session, and has no mode in which
    /// it does; see [`ask_first`](crate::ClientBuilder::ask_first).
    #[error(
        "session {session} is in the mode `{mode}`, in which the agent does not ask for permission, and \
         the agent has no mode in which it does"
    )]
    NeverAsks {
        /// The session. It is not open any more.
        session: SessionId,
        /// The mode.
        mode: String,
    },
    /// The session already has a turn in progress. Nothing was sent.
    #[error("session {session} is still answering the last prompt: cancel it or await its end")]
    TurnRunning {
        /// The session.
        session: SessionId,
    },
    /// The working directory of a session is invalid.
    #[error("cannot use {path} as a working directory: {reason}")]
    Directory {
        /// The path as passed by the caller.
        path: String,
        /// The defect.
        reason: String,
    },
    /// Connecting to the remote agent failed, or the connection was lost.
    #[cfg(feature = "remote")]
    #[error(transparent)]
    Remote(#[from] crate::remote::RemoteError),
    /// The agent's process exited and could not be restarted.
    #[error("the agent `{command}` has ended and could not be started again: {reason}")]
    NotRestarted {
        /// The command line.
        command: String,
        /// The cause of the last attempt's failure.
        reason: String,
    },
    /// The connection was lost before the response. It is open again.
    #[error("{method} was not answered: {reason}")]
    ConnectionLost {
        /// The method in flight.
        method: String,
        /// The cause, and whether the agent may have executed the method.
        reason: String,
    },
    /// The blocking client cannot be used.
    #[cfg(feature = "blocking")]
    #[error("the blocking client cannot be used: {reason}")]
    Blocking {
        /// The cause.
        reason: String,
    },
    /// The agent answered with an error, or the connection failed.
    #[error(transparent)]
    Sdk(#[from] acp_sdk::Error),
}

impl Error {
    /// Returns the error that the agent does not support `what`, because it lacks `capability`.
    pub fn unsupported(what: &str, capability: &'static str) -> Self {
        Self::Unsupported {
            what: what.to_owned(),
            capability,
        }
    }

    pub(crate) fn not_in_v2(what: &str, instead: Option<&str>) -> Self {
        Self::NotInVersion {
            what: what.to_owned(),
            version: ProtocolVersion::from(2),
            instead: instead.map(str::to_owned),
        }
    }

    /// Returns the code of the agent's error response; `None` for other errors.
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
            Self::Timeout { .. } | Self::Ended { .. } => true,
            #[cfg(feature = "remote")]
            Self::Remote(error) => error.is_temporary(),
            _ => false,
        }
    }

    /// Returns the cause of the agent's end, without the method in flight.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::AgentExited {
                command,
                exit,
                stderr,
                ..
            } => format!("the agent `{command}` {exit}{}", stderr_tail(stderr)),
            Self::AgentHungUp { command, .. } => {
                format!("the agent `{command}` closed its output")
            }
            other => other.to_string(),
        }
    }

    /// Adds the method in flight and the lines of standard output that are not messages.
    pub(crate) fn during(mut self, called: &str, lines: Vec<String>) -> Self {
        if let Self::AgentExited {
            method,
            stray_output,
            ..
        }
        | Self::AgentHungUp {
            method,
            stray_output,
            ..
        } = &mut self
        {
            called.clone_into(method);
            *stray_output = lines;
        }
        self
    }
}

fn stderr_tail(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return "; its standard error is empty".to_owned();
    }
    indented("; its standard error ends with:", stderr)
}

fn remedy(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; {instead}"))
}

/// Describes the standard error of a running agent, which may be empty for good reason.
fn stderr_so_far(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    stderr_tail(stderr)
}

/// Returns a hint for `initialize`: the program may not be an ACP agent.
fn hint(method: &str) -> &'static str {
    match method {
        "initialize" => " (is the command an ACP agent?)",
        _ => "",
    }
}

fn stray_output(noise: &[String]) -> String {
    if noise.is_empty() {
        return String::new();
    }
    indented("; its standard output has invalid messages:", noise)
}

fn stray_output_after(stderr: &[String], noise: &[String]) -> String {
    if stderr.is_empty() || noise.is_empty() {
        return stray_output(noise);
    }
    indented("\nand its standard output has invalid messages:", noise)
}

fn auth_methods(methods: &[(String, String)]) -> String {
    if methods.is_empty() {
        return " and offers no authentication method".to_owned();
    }
    let lines = methods.iter().map(|(id, name)| format!("{id}: {name}"));
    indented("; its methods:", &lines.collect::<Vec<_>>())
}

/// Returns a heading followed by indented lines.
fn indented(heading: &str, lines: &[String]) -> String {
    let lines = lines.iter().map(|line| format!("\n  {line}"));
    std::iter::once(heading.to_owned()).chain(lines).collect()
}
