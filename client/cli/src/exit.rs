//! The exit codes.

use std::process::ExitCode;

use acp_sdk::v1::StopReason;

use super::stop::Reason;
use super::text;
use acp_client::Error;
use acp_client::Outcome;
#[cfg(feature = "remote")]
use acp_client::remote::RemoteError;

/// The result of a run, as an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// The agent ended its turn.
    EndTurn = 0,
    /// The agent answered with an error, or violated the protocol; or the output cannot be written.
    Failed = 1,
    /// Wrong usage.
    Usage = 2,
    /// The agent could not be started, or ended too early.
    NoAgent = 3,
    /// The agent refused the prompt, or requires authentication.
    Refused = 4,
    /// A limit was reached.
    Limit = 5,
    /// The turn was ended because the agent did what nobody allowed.
    Denied = 6,
    /// Cancelled.
    Cancelled = 130,
}

impl Code {
    pub(super) const ALL: [Self; 8] = [
        Self::EndTurn,
        Self::Failed,
        Self::Usage,
        Self::NoAgent,
        Self::Refused,
        Self::Limit,
        Self::Denied,
        Self::Cancelled,
    ];

    pub(super) fn of_stop(reason: &StopReason) -> Self {
        match reason {
            StopReason::EndTurn => Self::EndTurn,
            StopReason::MaxTokens | StopReason::MaxTurnRequests => Self::Limit,
            StopReason::Refusal => Self::Refused,
            StopReason::Cancelled => Self::Cancelled,
            _ => Self::Failed,
        }
    }

    /// Returns the exit code of a turn that has ended.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
        match outcome.not_allowed.is_empty() {
            true => Self::of_stop(&outcome.stop_reason),
            false => Self::Denied,
        }
    }

    pub(super) fn of_error(error: &Error) -> Self {
        match error {
            Error::Spawn { .. } | Error::AgentExited { .. } | Error::AgentHungUp { .. } => {
                Self::NoAgent
            }
            Error::AuthenticationRequired { .. } => Self::Refused,
            #[cfg(feature = "remote")]
            Error::Remote(error) => match error {
                RemoteError::Url { .. }
                | RemoteError::Token { .. }
                | RemoteError::Option { .. }
                | RemoteError::Unencrypted { .. } => Self::Usage,
                error if matches!(error.status(), Some(401 | 403)) => Self::Refused,
                _ => Self::NoAgent,
            },
            Error::Timeout { .. } => Self::Limit,
            Error::NeverAsks { .. } => Self::Denied,
            Error::Directory { .. } => Self::Usage,
            _ => Self::Failed,
        }
    }

    /// Returns the exit code after an output error.
    pub(super) fn of_lost(error: std::io::ErrorKind) -> Self {
        match error {
            std::io::ErrorKind::BrokenPipe => Self::Cancelled,
            _ => Self::Failed,
        }
    }

    pub(super) fn of_reason(reason: Reason) -> Self {
        match reason {
            Reason::Timeout => Self::Limit,
            Reason::Interrupt | Reason::Signal | Reason::Command | Reason::OutputClosed => {
                Self::Cancelled
            }
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Returns the kind of an error, for programs.
pub(super) fn kind(error: &Error) -> &'static str {
    match error {
        Error::Spawn { .. } => "spawn",
        Error::AgentExited { .. } => "agent_exited",
        Error::AgentHungUp { .. } => "agent_hung_up",
        Error::AuthenticationRequired { .. } => "authentication_required",
        Error::Timeout { .. } => "timeout",
        Error::NotCancelled { .. } => "not_cancelled",
        Error::NeverAsks { .. } => "never_asks",
        Error::Version { .. } => "version",
        Error::Directory { .. } => "directory",
        #[cfg(feature = "remote")]
        Error::Remote(_) => "remote",
        Error::Sdk(acp_sdk::Error::Response { .. }) => "agent_error",
        _ => "protocol",
    }
}

/// Returns an error as lines: the event, the agent's details and the remedy, without what would control
/// a terminal.
pub(super) fn explained(error: &Error) -> Vec<String> {
    let lines = [
        Some(error.to_string()),
        text::details(error),
        hint(error).map(str::to_owned),
    ];
    let lines = lines.iter().flatten();
    lines.map(|line| acp_sdk::text::printable(line)).collect()
}

/// Returns the remedy for an error.
fn hint(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Spawn { .. } => "is the agent installed, and its command right?",
        Error::Sdk(acp_sdk::Error::Response { error, .. })
            if error.code == acp_sdk::v2::error_codes::UNSUPPORTED_PROTOCOL_VERSION =>
        {
            "`--protocol-version 2` offers version 2 too"
        }
        Error::AgentExited { method, .. }
        | Error::AgentHungUp { method, .. }
        | Error::Timeout { method, .. }
        | Error::Sdk(acp_sdk::Error::Response { method, .. })
            if method == "initialize" =>
        {
            "if the agent does not say what is wrong: many need an argument, such as `acp` or `--acp`"
        }
        Error::AuthenticationRequired { offered, .. } if offered.is_empty() => {
            "log in with the agent's own command"
        }
        Error::AuthenticationRequired { .. } => {
            "log in by `acp login` with the same agent, or by the agent's own command"
        }
        Error::NeverAsks { .. } => {
            "--approve-all runs the agent all the same; its own settings may have another mode"
        }
        Error::Version { .. } => "update acp or the agent, whichever is older",
        _ => return None,
    })
}
