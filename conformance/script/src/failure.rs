//! What is wrong with a script, and how a step failed.

use std::fmt;
use std::time::Duration;

use acp_conformance::pattern::Mismatch;

use super::wire::WireError;

/// How many of the messages that came instead are repeated.
const REPEATED: usize = 5;

/// Why a file is no script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file is not TOML, or has members that a script does not have.
    #[error("{file}: {source}")]
    Toml {
        /// The file.
        file: String,
        /// What is wrong, with line and column.
        source: basic_toml::Error,
    },
    /// A step does not say what to do, or says it in a way that means nothing.
    #[error("{file}:{line}: step {step}: {reason}")]
    Step {
        /// The file.
        file: String,
        /// The line at which the step begins.
        line: usize,
        /// The step's number, from 1.
        step: usize,
        /// What is wrong.
        reason: String,
    },
    /// There are no steps.
    #[error("{0}: no [[step]]")]
    Empty(String),
}

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    /// The file.
    pub file: String,
    /// The line at which the step begins.
    pub line: usize,
    /// The step's number, from 1.
    pub step: usize,
    /// What the step does, in its own words if it has any.
    pub title: String,
    /// Why it failed.
    pub reason: Reason,
    /// What came during the step, oldest first; the last few.
    pub came: Vec<String>,
}

/// Why a step failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing that came in time is what was expected; the message that was nearest
    /// differs there.
    NoMatch(Duration, Option<Mismatch>),
    /// The message that came is not what was expected as the next one.
    NotNext(Mismatch),
    /// Something came that is no JSON, where the next message was expected.
    NotJson(String),
    /// The peer's output ended.
    Ended,
    /// The peer's output did not end in time.
    NotEnded(Duration),
    /// Something came during a silence.
    NotSilent,
    /// The process ended with another code.
    Exit {
        /// The code that was expected.
        expected: u8,
        /// The code that it ended with; 128 and the number of a signal.
        came: u8,
    },
    /// The process is still running.
    Running(Duration),
    /// Writing failed.
    Wire(WireError),
    /// A variable is used before an `expect` binds it.
    Unbound(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            step,
            title,
            reason,
            came,
        } = self;
        write!(f, "{file}:{line}: step {step}, {title}: {reason}")?;
        match came.len() {
            0 if matches!(reason, Reason::NoMatch(..) | Reason::Ended) => {
                write!(f, "\n  nothing came")
            }
            0 => Ok(()),
            all => {
                let passed = all.saturating_sub(REPEATED);
                if passed > 0 {
                    write!(f, "\n  came: {passed} more")?;
                }
                came.iter()
                    .skip(passed)
                    .try_for_each(|line| write!(f, "\n  came: {line}"))
            }
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMatch(within, None) => write!(f, "no such message within {within:?}"),
            Self::NoMatch(within, Some(nearest)) => {
                write!(
                    f,
                    "no such message within {within:?}; the nearest one {nearest}"
                )
            }
            Self::NotNext(mismatch) => write!(f, "the next message {mismatch}"),
            Self::NotJson(error) => write!(f, "the next line is not JSON: {error}"),
            Self::Ended => f.write_str("the peer's output has ended"),
            Self::NotEnded(within) => {
                write!(f, "the peer's output did not end within {within:?}")
            }
            Self::NotSilent => f.write_str("the peer was to be silent"),
            Self::Exit { expected, came } => {
                write!(
                    f,
                    "the process was to exit with {expected}, it did with {came}"
                )
            }
            Self::Running(within) => {
                write!(f, "the process has not ended within {within:?}")
            }
            Self::Wire(error) => error.fmt(f),
            Self::Unbound(name) => {
                write!(f, "{{{name}}} has no value; no earlier `expect` binds it")
            }
        }
    }
}
