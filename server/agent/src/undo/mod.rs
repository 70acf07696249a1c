//! Undo and redo of what turns changed in files.
//!
//! A [`Journal`] keeps, for each turn, what the files were before their first change and after the
//! last one. [`undo`](Journal::undo) restores the newest turn's files, [`redo`](Journal::redo)
//! brings back what that replaced. [`Journals`] has a journal for each session of an agent:
//!
//! ```
//! use std::path::Path;
//!
//! use acp_agent::undo::Journals;
//! use acp_sdk::extensions::TurnRestoration;
//! use acp_sdk::v1::StopReason;
//! use acp_server::{AgentInfo, Handler, HandlerResult, Session, Turn, UndoRequest};
//!
//! struct Agent {
//!     journals: Journals,
//! }
//!
//! impl Handler for Agent {
//!     type State = ();
//!
//!     fn info(&self) -> AgentInfo {
//!         AgentInfo::new("editor", "0.1.0").undo()
//!     }
//!
//!     async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
//!         let mut undo = self.journals.begin(&turn).await?;
//!         undo.before_change(&turn.session().resolve("notes.txt")).await?;
//!         turn.write_file("notes.txt", turn.prompt_text()).await?;
//!         undo.end().await?;
//!         Ok(StopReason::EndTurn)
//!     }
//!
//!     /// Serves `_acp-sdk/session/undo` and `redo`, and those of REST.
//!     async fn undo(&self, session: &Session, request: UndoRequest) -> HandlerResult<TurnRestoration> {
//!         self.journals.undo(session, request).await
//!     }
//!
//!     async fn close(&self, (): (), session: &Session) {
//!         self.journals.close(session).await;
//!     }
//! }
//!
//! # fn example() -> Agent {
//! Agent { journals: Journals::new(Path::new("/var/lib/editor/undo")) }
//! # }
//! ```
//!
//! # What is kept
//!
//! Contents are kept once, by their SHA-256, in the folder `blobs`; the file `journal` has the
//! turns. Permission bits and symbolic links are kept as they are; owners, access lists and empty
//! directories are not. Of files above [`file_bytes`](JournalLimits::file_bytes) only the size is
//! kept, and undo leaves them as they are. When all contents have more than
//! [`total_bytes`](JournalLimits::total_bytes), the oldest turns are dropped.
//!
//! The journal survives the end of its process at any time. A turn that was running then ends when
//! the journal is opened again, with the files as they are found.
//!
//! # Conflicts
//!
//! A file that is not what the turn left there was changed by somebody else. Nothing is restored
//! then, unless `force` is set; the opposite move brings the overwritten content back.
//!
//! Nothing outside of the session's directories is read or written.

mod blobs;
mod error;
mod journal;
mod journals;
mod log;
mod place;
mod restore;
mod state;
#[cfg(test)]
mod tests;
mod turns;

pub use acp_server::UndoDirection as Direction;
pub use error::JournalError;
pub use journal::{Ended, Journal};
pub use journals::{Journals, TurnJournal};
pub(crate) use place::resolved;

use std::path::Path;

/// Limits of a [`Journal`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalLimits {
    /// Size of a file whose content is kept (default: 25 MiB).
    pub file_bytes: u64,
    /// Size of all kept contents (default: 256 MiB).
    pub total_bytes: u64,
    /// Number of turns (default: 200).
    pub turns: usize,
    /// Number of files that one turn changes (default: 10,000).
    pub files_per_turn: usize,
}

impl Default for JournalLimits {
    fn default() -> Self {
        Self {
            file_bytes: 25 << 20,
            total_bytes: 256 << 20,
            turns: 200,
            files_per_turn: 10_000,
        }
    }
}

/// Creates a directory that only its owner reads, with those above it.
fn create_private_dir(path: &Path) -> Result<(), JournalError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| JournalError::Io {
        doing: "create",
        path: path.to_owned(),
        error,
    })
}
