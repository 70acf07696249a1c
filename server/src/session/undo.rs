//! Undo and redo of what turns changed in files, which is the handler's work.

use std::fmt;

use acp_sdk::extensions::TurnRestoration;
use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use serde::{Deserialize, Serialize};

use super::Session;

/// What a client wants of the turns of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoRequest {
    /// Whether a turn is undone or redone.
    pub direction: UndoDirection,
    /// Whether files that somebody else has changed since are overwritten.
    pub force: bool,
}

impl UndoRequest {
    /// Creates a request that overwrites no change of others.
    #[must_use]
    pub fn new(direction: UndoDirection) -> Self {
        let force = false;
        Self { direction, force }
    }

    /// Sets whether files that somebody else has changed since are overwritten.
    #[must_use]
    pub fn with_force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }
}

/// Which way to go in the turns of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UndoDirection {
    /// The newest turn is undone.
    Undo,
    /// The latest undone turn is redone.
    Redo,
}

impl fmt::Display for UndoDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        })
    }
}

impl Session {
    /// Restores the files of a turn, by [`Handler::undo`](crate::Handler::undo). Dropping the future
    /// does not stop it.
    ///
    /// # Errors
    ///
    /// -32601 if the agent does not [declare](crate::AgentInfo::undo) it; the handler's.
    pub async fn undo(&self, request: UndoRequest) -> HandlerResult<TurnRestoration> {
        if !self.core().info.undo {
            let direction = request.direction;
            return Err(HandlerError::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!(
                    "the agent of session {} has no {direction} of files",
                    self.id()
                ),
            ));
        }
        let session = self.clone();
        // Dropped half-way, the files would be of no turn.
        let restored = self
            .core()
            .finish(|_| async move { session.core().handler.undo(&session, request).await });
        restored.await
    }
}
