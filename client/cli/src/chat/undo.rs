//! Undoes and redoes what turns have changed in the directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_client::review::{Restored, ReviewError, Snapshots, UndoStack};
use tokio::time::timeout;

use super::Failure;
use super::style::{Colour, clean};
use super::talk::Talk;
use crate::args::{ChatArgs, UndoIn};

/// Maximum time for a snapshot. It comes before each prompt, so a directory for which this does not
/// suffice has none.
const LONGEST: Duration = Duration::from_secs(10);

/// Maximum number of files that are named.
const MOST_NAMED: usize = 5;

/// What can be undone.
pub(super) enum Undo {
    /// Snapshots are taken from the first prompt on.
    Wanted,
    Ready(UndoStack),
    /// Nothing, for this reason.
    Off(String),
}

impl Undo {
    pub(super) fn new(args: &ChatArgs, directory: &Path) -> Self {
        let off = |reason: &str| Self::Off(reason.to_owned());
        match args.undo {
            _ if args.setup.agent.remote.url.is_some() => {
                off("the agent may work on another machine")
            }
            UndoIn::Never => off("`--undo never` was given"),
            UndoIn::Repositories if !directory.join(".git").exists() => {
                off("the directory is no git repository, and `--undo always` was not given")
            }
            UndoIn::Repositories | UndoIn::Always => Self::Wanted,
        }
    }

    /// Takes the snapshot before a turn.
    async fn begin(&mut self, directory: &Path) -> Result<(), ReviewError> {
        if let Self::Wanted = self {
            let snapshots = Snapshots::of(directory).await?;
            *self = Self::Ready(UndoStack::new(snapshots));
        }
        if let Self::Ready(turns) = self {
            turns.begin().await?;
        }
        Ok(())
    }

    /// Takes the snapshot after a turn. Returns the files that it changed.
    async fn end(&mut self) -> Result<Vec<PathBuf>, ReviewError> {
        let Self::Ready(turns) = self else {
            return Ok(Vec::new());
        };
        let Some((before, after)) = turns.end().await? else {
            return Ok(Vec::new());
        };
        let changes = turns.snapshots().changes(&before, &after).await?;
        Ok(changes.into_iter().map(|change| change.path).collect())
    }
}

impl Talk<'_> {
    /// Prepares a turn to be undone. A failure is shown, and turns cannot be undone any more.
    pub(super) async fn before_turn(&mut self) -> Result<(), Failure> {
        match in_time(self.undo.begin(&self.cwd)).await {
            Ok(()) => Ok(()),
            Err(reason) => self.undo_off(reason).await,
        }
    }

    /// Names the files that a turn has changed.
    pub(super) async fn after_turn(&mut self) -> Result<(), Failure> {
        let changed = match in_time(self.undo.end()).await {
            Ok(changed) => changed,
            Err(reason) => return self.undo_off(reason).await,
        };
        if changed.is_empty() {
            return Ok(());
        }
        let line = format!("changed: {} · /undo brings them back", names(&changed));
        let line = self.view.dim(&line);
        self.screen.print(&line);
        Ok(())
    }

    async fn undo_off(&mut self, reason: String) -> Result<(), Failure> {
        let line = format!("turns cannot be undone: {reason}");
        self.undo = Undo::Off(reason);
        self.say(Colour::Yellow, &line).await
    }

    /// Executes `/undo` or `/redo`.
    pub(super) async fn undo_or_redo(&mut self, undoes: bool) -> String {
        let turns = match &mut self.undo {
            Undo::Ready(turns) => turns,
            Undo::Wanted => return "No turn has changed a file.\n".to_owned(),
            Undo::Off(reason) => return format!("Turns cannot be undone: {}.\n", clean(reason)),
        };
        let restored = match undoes {
            true => turns.undo().await,
            false => turns.redo().await,
        };
        match restored {
            Ok(Some(restored)) => lines(&restored),
            Ok(None) => "There is nothing left.\n".to_owned(),
            Err(error) => format!("{}\n", clean(&error.to_string())),
        }
    }
}

/// Returns the result of a snapshot, or why there is none.
async fn in_time<T>(work: impl Future<Output = Result<T, ReviewError>>) -> Result<T, String> {
    match timeout(LONGEST, work).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!(
            "a snapshot takes longer than {} s",
            LONGEST.as_secs()
        )),
    }
}

/// Returns what was restored and kept, as lines.
fn lines(restored: &Restored) -> String {
    let mut text = match restored.restored.is_empty() {
        true => "Nothing was changed.\n".to_owned(),
        false => format!(
            "Restored: {}. The agent does not know of it.\n",
            names(&restored.restored)
        ),
    };
    if !restored.kept.is_empty() {
        text += &format!("Changed since, and kept: {}.\n", names(&restored.kept));
    }
    text
}

/// Returns the first paths, and the number of the others.
fn names(paths: &[PathBuf]) -> String {
    let named = paths.iter().take(MOST_NAMED);
    let named: Vec<_> = named.map(|path| clean(&path.to_string_lossy())).collect();
    match paths.len().saturating_sub(MOST_NAMED) {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}
