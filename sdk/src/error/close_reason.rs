//! Why a connection ended.

use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Why a connection ended.
///
/// Pending calls fail with [`Error::Closed`](crate::Error::Closed) and this reason.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed its side of the transport.
    EndOfInput,
    /// The peer's process exited.
    ProcessExited(Arc<ProcessExit>),
    /// Reading from the transport failed.
    ReadFailed(Arc<io::Error>),
    /// Writing to the transport failed, for example because the peer closed its input.
    WriteFailed(Arc<io::Error>),
    /// The peer broke the protocol in a way that no further message can be exchanged.
    Protocol(String),
    /// This side closed the connection.
    ClosedLocally,
    /// The peer stopped reading: unsent output made no progress for this long.
    WriteTimedOut(Duration),
    /// The connection was dropped while it ran, or its runtime shut down.
    Dropped,
    /// A reason that the application supplied.
    Other(String),
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessExit {
    /// The command, for messages.
    pub command: String,
    /// The exit code; `None` if a signal ended the process, or its status is unknown.
    pub code: Option<i32>,
    /// The number of the signal that ended the process.
    pub signal: Option<i32>,
    /// The last lines of standard error.
    pub stderr: Vec<String>,
}

impl ProcessExit {
    /// Creates the description of an exit with unknown status.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }

    /// Sets the code and the signal from a status.
    #[must_use]
    pub fn with_status(mut self, status: ExitStatus) -> Self {
        self.code = status.code();
        #[cfg(unix)]
        {
            self.signal = std::os::unix::process::ExitStatusExt::signal(&status);
        }
        self
    }

    /// Sets the exit code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Option<i32>>) -> Self {
        self.code = code.into();
        self
    }

    /// Sets the signal.
    #[must_use]
    pub fn with_signal(mut self, signal: impl Into<Option<i32>>) -> Self {
        self.signal = signal.into();
        self
    }

    /// Sets the last lines of standard error.
    #[must_use]
    pub fn with_stderr(mut self, lines: Vec<String>) -> Self {
        self.stderr = lines;
        self
    }
}

impl CloseReason {
    /// Creates [`CloseReason::Other`]. The text has no final period.
    pub fn other(reason: impl Into<String>) -> Self {
        Self::Other(reason.into())
    }

    /// Returns whether the peer ended the connection in order: it closed its side, or its
    /// process exited with success.
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        match self {
            Self::EndOfInput | Self::ClosedLocally => true,
            Self::ProcessExited(exit) => exit.code == Some(0),
            _ => false,
        }
    }

    /// Returns the system's error, if one ended the connection.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::ReadFailed(error) | Self::WriteFailed(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ProcessExit> for CloseReason {
    fn from(exit: ProcessExit) -> Self {
        Self::ProcessExited(Arc::new(exit))
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfInput => f.write_str("the peer closed its side"),
            Self::ProcessExited(exit) => exit.fmt(f),
            Self::ReadFailed(error) => write!(f, "reading from the peer failed: {error}"),
            Self::WriteFailed(error) => write!(f, "writing to the peer failed: {error}"),
            Self::Protocol(reason) => write!(f, "protocol violation: {reason}"),
            Self::ClosedLocally => f.write_str("closed by this side"),
            Self::WriteTimedOut(after) => {
                write!(f, "the peer accepted no output for {after:?}")
            }
            Self::Dropped => f.write_str("the connection was dropped"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = &self.command;
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "`{command}` exited with code {code}")?,
            (None, Some(signal)) => write!(f, "`{command}` was terminated by signal {signal}")?,
            (None, None) => write!(f, "`{command}` exited with unknown status")?,
        }
        if let Some(last) = self.stderr.last() {
            write!(f, "; last line of its standard error: {last}")?;
        }
        Ok(())
    }
}
