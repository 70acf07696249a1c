//! Reviewing what an agent changed: snapshots of a directory, and the hunks of a text.
//!
//! [`Snapshots`] keep the state of the files of a directory, whoever writes them: the client for the
//! agent, the agent itself, or a command. [`UndoStack`] takes one before and after each turn, so that the
//! changes of a turn can be listed, undone and redone. [`hunks`] splits the change of a text into
//! parts, each of which can be rejected.
//!
//! Snapshots need the program `git`; the directory need not be a repository. They are kept in a
//! temporary folder that is removed with the last clone, in which existing objects of the directory's repository are
//! not written again. Neither the repository nor the settings of `git` are changed or followed, so that nothing that
//! an agent writes there is run.

mod error;
mod git;
mod hunks;
mod snapshots;
mod undo;

pub use self::error::ReviewError;
pub use self::hunks::{Hunk, hunks, rejected};
pub use self::snapshots::{ChangeKind, FileChange, LeftAlone, Restored, Snapshot, Snapshots};
pub use self::undo::UndoStack;
