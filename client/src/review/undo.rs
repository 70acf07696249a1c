//! The changes of turns, undone and redone.

use super::{LeftAlone, Restored, ReviewError, Snapshot, Snapshots};

/// Maximum number of turns that can be undone.
const MOST_TURNS: usize = 100;

/// Takes a snapshot before and after each turn, so that turns can be undone and redone.
///
/// ```no_run
/// # async fn example(session: &acp_client::Session) -> Result<(), Box<dyn std::error::Error>> {
/// use acp_client::review::{Snapshots, UndoStack};
///
/// let mut turns = UndoStack::new(Snapshots::of("/home/me/project").await?);
/// turns.begin().await?;
/// session.prompt("Fix the bug").await?.outcome().await?;
/// turns.end().await?;
/// if let Some(undone) = turns.undo().await? {
///     println!("restored: {:?}, changed since: {:?}", undone.restored, undone.kept);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct UndoStack {
    snapshots: Snapshots,
    /// The turns, oldest first.
    turns: Vec<(Snapshot, Snapshot)>,
    /// The number of turns that are not undone.
    done: usize,
    begun: Option<Snapshot>,
}

impl UndoStack {
    /// Creates an empty stack.
    #[must_use]
    pub fn new(snapshots: Snapshots) -> Self {
        Self {
            snapshots,
            turns: Vec::new(),
            done: 0,
            begun: None,
        }
    }

    /// The snapshots, such as for the changes of a turn.
    #[must_use]
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Takes the snapshot before a turn. Returns the files that cannot be restored.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::take`].
    pub async fn begin(&mut self) -> Result<Vec<LeftAlone>, ReviewError> {
        let (snapshot, left_alone) = self.snapshots.take().await?;
        self.begun = Some(snapshot);
        Ok(left_alone)
    }

    /// Takes the snapshot after a turn. Returns the snapshots of the turn if it changed a file. What was undone
    /// before cannot be redone any more then.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::take`].
    pub async fn end(&mut self) -> Result<Option<(Snapshot, Snapshot)>, ReviewError> {
        let Some(before) = self.begun.take() else {
            return Ok(None);
        };
        let (after, _) = self.snapshots.take().await?;
        if before == after {
            return Ok(None);
        }
        self.turns.truncate(self.done);
        if self.turns.len() == MOST_TURNS {
            self.turns.remove(0);
        }
        self.turns.push((before.clone(), after.clone()));
        self.done = self.turns.len();
        Ok(Some((before, after)))
    }

    /// Undoes the changes of the latest turn that is not undone; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::restore`].
    pub async fn undo(&mut self) -> Result<Option<Restored>, ReviewError> {
        let Some(position) = self.done.checked_sub(1) else {
            return Ok(None);
        };
        let (before, after) = &self.turns[position];
        let restored = self.snapshots.restore(after, before).await?;
        self.done = position;
        Ok(Some(restored))
    }

    /// Redoes the turn that was undone last; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Those of [`Snapshots::restore`].
    pub async fn redo(&mut self) -> Result<Option<Restored>, ReviewError> {
        let Some((before, after)) = self.turns.get(self.done) else {
            return Ok(None);
        };
        let restored = self.snapshots.restore(before, after).await?;
        self.done += 1;
        Ok(Some(restored))
    }
}
