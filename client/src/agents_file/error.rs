//! Why a file of agents cannot be used.

use std::path::{Path, PathBuf};

/// Why a file of agents cannot be used: the file, the agent and the member, as far as they are known.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot use {}: {place}{reason}", path.display())]
pub struct AgentsFileError {
    path: PathBuf,
    /// With the separator that follows.
    place: String,
    reason: String,
}

impl AgentsFileError {
    pub(super) fn file(path: &Path, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            place: String::new(),
            reason,
        }
    }

    /// `agent` is a name in backquotes, or a number.
    pub(super) fn agent(path: &Path, agent: &str, member: Option<String>, reason: String) -> Self {
        let place = match member {
            Some(member) => format!("agent {agent}: member `{member}`: "),
            None => format!("agent {agent}: "),
        };
        Self {
            path: path.to_owned(),
            place,
            reason,
        }
    }
}
