//! Why the suite could not do its work. Findings about the target are not errors.

use std::io;
use std::path::{Path, PathBuf};

/// The suite's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the suite could not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder holds nothing to check.
    #[error("{0} holds no recording (*.jsonl, *.ndjson); name a file or another folder")]
    NoRecording(PathBuf),
    /// The protocol's document is not valid.
    #[error(transparent)]
    Schema(#[from] acp_schema::Error),
    /// The agent's command could not be started.
    #[error("cannot start {command}: {source}")]
    Start {
        /// The command, as a shell would take it.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The URL of an agent, or an option for it, cannot be used.
    #[cfg(all(unix, feature = "remote"))]
    #[error(transparent)]
    Remote(#[from] crate::target::EndpointError),
    /// A URL is given to a build that cannot use one.
    #[error(
        "remote agents and clients need the feature `remote`, which this acp-conformance was built without; install it by \
        `cargo install acp-conformance-cli --features remote`"
    )]
    NoRemote,
    /// The agent runs but no check can: it does not answer the handshake.
    #[error("{command} does not speak the protocol: {reason}{stderr}")]
    NoHandshake {
        /// The command, as a shell would take it.
        command: String,
        /// What it did instead.
        reason: String,
        /// The last lines of its standard error, with a heading, or nothing.
        stderr: String,
    },
    /// A profile does not say what a profile says.
    #[error("cannot use the profile {path}: {reason}")]
    Profile {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of accepted findings cannot be used.
    #[error("cannot use the accepted findings in {path}: {reason}")]
    Known {
        /// The path.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A file is no report that can be used.
    #[error("cannot use the report {path}: {reason}")]
    NoReport {
        /// The path.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// A report does not fit the template of a format, which is a fault of this crate.
    #[error("cannot render {name}: {reason}; please report this, with the output of `--json`")]
    Template {
        /// The template's file.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// The command that plays the agent to a client cannot be used.
    #[error(
        "cannot use {program} to play the agent: {reason}; install acp-conformance-cli in this \
         version, or say where it is with `ClientTest::suite`"
    )]
    NoSuite {
        /// The command.
        program: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A client under test has ended, or its time was over, before it started the agent.
    #[error(
        "the client `{command}` did not start the agent; the last line of its standard error: {says}\n\
         `{{agent}}` in its command stands for the agent's command; it starts in a folder of the suite"
    )]
    NotLaunched {
        /// The client's command.
        command: String,
        /// The last line of its standard error.
        says: String,
    },
    /// A folder is no checkout of the specification's repository.
    #[error("cannot use {path} as a checkout of the specification: {reason}")]
    Specification {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There are fewer than two reports.
    #[error("nothing to compare: name at least two reports that `--json FILE` has written")]
    NothingToCompare,
    /// No requirement, area or tier has such a name.
    #[error(
        "no requirement, area or tier is called {0}; `acp-conformance list` prints all requirements"
    )]
    NoRequirement(String),
    /// No protocol of another system has such a name.
    #[error("no dialect is called {0}; the names are those of the files in schema/dialects")]
    NoDialect(String),
    /// What is to be said instead of a word of a command that does not have it.
    #[error("the client's command has no word {0}, which --without-terminals replaces")]
    NoWord(String),
    /// The reference agent cannot be broken in such a way.
    #[error("no broken agent is called {0}")]
    NoBroken(String),
    /// The sessions' working directory could not be made.
    #[error("cannot make a working directory for the agent: {0}")]
    Folder(io::Error),
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(io::Error),
}

impl Error {
    /// Returns the conversion of the system's error for a file or folder that cannot be read.
    pub fn reading(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the conversion of the system's error for a file or folder that cannot be written.
    pub fn writing(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the conversion of the system's error for a command that cannot be started.
    pub fn starting(command: &str) -> impl Fn(io::Error) -> Self + Copy {
        |source| Self::Start {
            command: command.to_owned(),
            source,
        }
    }

    /// Whether the reader of the result has gone away.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
