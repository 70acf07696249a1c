//! Errors of rules.

use std::path::PathBuf;

/// The error of invalid or unreadable rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A file cannot be read.
    #[error("cannot read rules from {path}: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The contents of a file are not valid rules.
    #[error("invalid rules in {path}: {reason}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The defect and its position.
        reason: String,
    },
    /// A rule cannot be added to a file.
    #[error("cannot add a rule to {path}: {reason}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A pattern is invalid.
    #[error("invalid pattern `{pattern}`: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The defect.
        reason: String,
    },
    /// The kind of tool call does not exist.
    #[error(
        "unknown kind `{kind}`. Use read, edit, delete, move, search, execute, think, fetch, \
        switch_mode or other"
    )]
    Kind {
        /// The kind.
        kind: String,
    },
    /// A condition is an empty list.
    #[error("expected at least one value in `{member}`; leave it out to match every call")]
    Empty {
        /// The name of the condition.
        member: &'static str,
    },
}
