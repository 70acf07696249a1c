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

    /// Prepares a turn to be undone.
    ///
    /// # Errors
    ///
    /// The line for the user. Turns cannot be undone any more.
    pub(super) async fn begin(&mut self, directory: &Path) -> Result<(), String> {
        let begun = in_time(self.take_before(directory)).await;
        begun.map_err(|reason| self.switch_off(reason))
    }

    /// Ends a turn. Returns the line about the files that it changed.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub(super) async fn end(&mut self) -> Result<Option<String>, String> {
        let changed = in_time(self.take_after()).await;
        let changed = changed.map_err(|reason| self.switch_off(reason))?;
        let line = || format!("changed: {} · /undo brings them back", names(&changed));
        Ok((!changed.is_empty()).then(line))
    }

    fn switch_off(&mut self, reason: String) -> String {
        let line = format!("turns cannot be undone: {reason}");
        *self = Self::Off(reason);
        line
    }

    /// Executes `/undo` or `/redo`.
    pub(super) async fn undo_or_redo(&mut self, undoes: bool) -> String {
        let turns = match self {
            Self::Ready(turns) => turns,
            Self::Wanted => return "No turn has changed a file.\n".to_owned(),
            Self::Off(reason) => return format!("Turns cannot be undone: {}.\n", clean(reason)),
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

    /// Takes the snapshot before a turn.
    async fn take_before(&mut self, directory: &Path) -> Result<(), ReviewError> {
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
    async fn take_after(&mut self) -> Result<Vec<PathBuf>, ReviewError> {
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
    /// Prepares a turn to be undone, and shows what was changed until now.
    pub(super) async fn before_turn(&mut self) -> Result<(), Failure> {
        let shown = self.between_turns(true).await;
        self.screen.print(&shown);
        Ok(self.screen.flush().await?)
    }

    /// Shows what a turn has changed.
    pub(super) async fn after_turn(&mut self) -> Result<(), Failure> {
        let runs = self.running_elsewhere().is_some();
        let shown = self.between_turns(runs).await;
        self.screen.print(&shown);
        Ok(self.screen.flush().await?)
    }

    /// Ends what `/undo` undoes as one, and begins anew if a turn `runs`. What turns of several sessions have changed
    /// at the same time cannot be told apart. Returns the files, or a failure, as lines.
    pub(super) async fn between_turns(&mut self, runs: bool) -> String {
        let ended = match self.undo.end().await {
            Ok(line) => line.map(|line| self.view.dim(&line)),
            Err(line) => Some(self.view.note(Colour::Yellow, &line)),
        };
        let begun = match runs {
            true => self.undo.begin(&self.cwd).await,
            false => Ok(()),
        };
        let failed = begun
            .err()
            .map(|line| self.view.note(Colour::Yellow, &line));
        ended.unwrap_or_default() + &failed.unwrap_or_default()
    }

    /// Executes `/undo` or `/redo`. What a turn in the background has changed until now is undone first, and what it
    /// changes from now on is none of what is restored.
    pub(super) async fn undo_or_redo(&mut self, undoes: bool) -> String {
        let mut shown = self.between_turns(false).await;
        shown += &self.undo.undo_or_redo(undoes).await;
        if self.running_elsewhere().is_some() {
            shown += &self.between_turns(true).await;
        }
        shown
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
