//! The journal of one session.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::blobs::{Blobs, private_file};
use super::log::Log;
use super::place::{Place, Roots};
use super::state::State;
use super::turns::{Record, Turns};
use super::{Direction, JournalError, JournalLimits, create_private_dir};

/// Records beyond those that are needed before the file is written anew.
const SPARE_RECORDS: usize = 256;

/// What the turns of a session changed in files. All functions block.
#[derive(Debug)]
pub struct Journal {
    pub(super) roots: Roots,
    pub(super) blobs: Blobs,
    pub(super) limits: JournalLimits,
    pub(super) turns: Turns,
    /// Turns that were dropped while the open one runs.
    dropped: Vec<String>,
    log: Log,
    /// Locked until the journal is dropped.
    _lock: File,
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Files that undo will leave as they are, with the reason.
    pub left: Vec<(PathBuf, String)>,
    /// The turns that can no longer be undone, the oldest first, because of the limits. The last one can
    /// be the turn itself.
    pub dropped: Vec<String>,
}

impl Journal {
    /// Opens the journal in a folder, which is created if it does not exist, for files inside of
    /// some directories.
    ///
    /// # Errors
    ///
    /// [`JournalError::InUse`] while somebody else has it open, and [`JournalError::Io`].
    pub fn open(
        folder: &Path,
        directories: impl IntoIterator<Item = impl AsRef<Path>>,
        limits: JournalLimits,
    ) -> Result<Self, JournalError> {
        create_private_dir(folder)?;
        let lock = lock(folder)?;
        let roots = Roots::open(directories).map_err(|error| JournalError::Io {
            doing: "open the session's directories for",
            path: folder.to_owned(),
            error,
        })?;
        let blobs = Blobs::open(folder.join("blobs"))?;
        let (log, records) = Log::open(folder.join("journal"))?;
        let mut turns = Turns::default();
        records.into_iter().for_each(|record| turns.apply(record));
        let mut journal = Self {
            roots,
            blobs,
            limits,
            turns,
            dropped: Vec::new(),
            log,
            _lock: lock,
        };
        if journal.turns.open {
            // Its process has ended meanwhile.
            journal.end()?;
        }
        journal.remove_unused();
        journal.shorten()?;
        Ok(journal)
    }

    /// Begins a turn. What was undone can no longer be redone.
    ///
    /// # Errors
    ///
    /// [`JournalError::TurnOpen`] while another turn is open, and [`JournalError::Io`].
    pub fn begin(&mut self, turn: &str) -> Result<(), JournalError> {
        if self.turns.open {
            return Err(JournalError::TurnOpen);
        }
        let had_undone = self.turns.next(Direction::Redo).is_some();
        let turn = turn.to_owned();
        self.record(Record::Begin { turn })?;
        if had_undone {
            self.remove_unused();
        }
        Ok(())
    }

    /// Keeps what a path is. Call this before each change; only the first one in a turn is kept. Of
    /// a symbolic link, the link is kept and the file that it leads to.
    ///
    /// # Errors
    ///
    /// [`JournalError::NoTurn`] outside of a turn, [`JournalError::Path`] for what cannot be kept, and
    /// [`JournalError::Io`]. The change should not be made then.
    pub fn before_change(&mut self, path: impl AsRef<Path>) -> Result<(), JournalError> {
        let path = path.as_ref();
        let refused = |reason: String| JournalError::Path {
            path: path.to_owned(),
            reason,
        };
        let mut next = path.to_owned();
        // As many links in each other as systems follow.
        for _ in 0..40 {
            let place = self.roots.place(&next).map_err(refused)?;
            let State::Link { target } = self.keep(&place)? else {
                return Ok(());
            };
            let parent = place.path.parent().unwrap_or(&place.path);
            next = parent.join(target);
        }
        Err(refused(
            "it leads through too many symbolic links".to_owned(),
        ))
    }

    /// Keeps what a place is, unless this turn has kept it already; returns what it is.
    fn keep(&mut self, place: &Place) -> Result<State, JournalError> {
        let refused = |reason: String| JournalError::Path {
            path: place.path.clone(),
            reason,
        };
        let turn = self.turns.open_turn().ok_or(JournalError::NoTurn)?;
        let name = place.path.to_str();
        let name = name.ok_or_else(|| refused("it is no UTF-8 text".to_owned()))?;
        let is_kept = turn.files.iter().any(|file| file.path == name);
        if !is_kept && turn.files.len() >= self.limits.files_per_turn {
            let most = self.limits.files_per_turn;
            return Err(refused(format!(
                "the turn has changed {most} files already"
            )));
        }
        let state = place.state(self.limits.file_bytes);
        let (mut state, content) = state.map_err(|error| refused(error.to_string()))?;
        if is_kept {
            return Ok(state);
        }
        let path = name.to_owned();
        if let Some((hash, size)) = state.blob() {
            match self.make_room(Some((hash, size)))? {
                true => self.blobs.put(hash, &content)?,
                false => state = State::Large { size },
            }
        }
        let record = Record::Before {
            path,
            state: state.clone(),
        };
        self.record(record)?;
        Ok(state)
    }

    /// Ends the turn. A turn that changed no file is forgotten.
    ///
    /// # Errors
    ///
    /// [`JournalError::NoTurn`] without a turn, and [`JournalError::Io`].
    pub fn end(&mut self) -> Result<Ended, JournalError> {
        let turn = self.turns.open_turn().ok_or(JournalError::NoTurn)?;
        let mut after = Vec::new();
        let mut left = Vec::new();
        let mut room = self.limits.total_bytes;
        for file in &turn.files {
            // What cannot be read cannot be restored either; the turn ends all the same.
            let found = self.roots.same_place(&file.path).and_then(|place| {
                let state = place.state(self.limits.file_bytes);
                state.map_err(|error| error.to_string())
            });
            let (mut state, mut reason) = (State::Other, None);
            match found {
                Ok((found, content)) => {
                    state = found;
                    if let Some((hash, size)) = state.blob() {
                        match room.checked_sub(size) {
                            Some(rest) => {
                                room = rest;
                                self.blobs.put(hash, &content)?;
                            }
                            None => state = State::Large { size },
                        }
                    }
                }
                Err(error) => reason = Some(error),
            }
            if file.before != state {
                let reason = reason
                    .or_else(|| file.before.unkept())
                    .or_else(|| state.unkept());
                left.extend(reason.map(|reason| (PathBuf::from(&file.path), reason)));
            }
            after.push(state);
        }
        self.record(Record::End { after })?;
        self.log.sync()?;
        self.make_room(None)?;
        self.remove_unused();
        self.shorten()?;
        Ok(Ended {
            left,
            dropped: std::mem::take(&mut self.dropped),
        })
    }

    /// Drops the oldest turns until everything is within the limits, with another content; returns
    /// whether it is. The open turn is never dropped.
    fn make_room(&mut self, another: Option<(&str, u64)>) -> Result<bool, JournalError> {
        let is_full = |turns: &Turns| {
            let mut kept = turns.blobs();
            kept.extend(another);
            kept.values().sum::<u64>() > self.limits.total_bytes
                || turns.list.len() > self.limits.turns
        };
        if !is_full(&self.turns) {
            return Ok(true);
        }
        let mut rest = self.turns.clone();
        let mut dropped = Vec::new();
        while rest.done > 0 && is_full(&rest) {
            dropped.push(rest.list[0].name.clone());
            rest.apply(Record::Dropped { count: 1 });
        }
        let has_room = !is_full(&rest);
        if !dropped.is_empty() {
            let count = dropped.len();
            self.record(Record::Dropped { count })?;
            self.dropped.extend(dropped);
            self.remove_unused();
        }
        Ok(has_room)
    }

    /// Returns the number of turns that can be undone.
    #[must_use]
    pub fn undoable(&self) -> usize {
        self.turns.done
    }

    /// Returns the number of turns that can be redone.
    #[must_use]
    pub fn redoable(&self) -> usize {
        match self.turns.open {
            true => 0,
            false => self.turns.list.len() - self.turns.done,
        }
    }

    /// Writes a record, then applies it.
    pub(super) fn record(&mut self, record: Record) -> Result<(), JournalError> {
        self.log.append(&record)?;
        self.turns.apply(record);
        Ok(())
    }

    /// Makes a move last.
    pub(super) fn moved(&mut self, direction: Direction) -> Result<(), JournalError> {
        self.record(Record::Moved { direction })?;
        self.log.sync()?;
        self.shorten()
    }

    fn remove_unused(&self) {
        let used: HashSet<String> = self.turns.blobs().into_keys().map(str::to_owned).collect();
        self.blobs.retain(&used);
    }

    /// Writes the file anew when most of it is no longer needed.
    fn shorten(&mut self) -> Result<(), JournalError> {
        let records = self.turns.records();
        match self.log.records() > 2 * records.len() + SPARE_RECORDS {
            true => self.log.replace(&records),
            false => Ok(()),
        }
    }
}

/// Locks a journal until the file is closed.
fn lock(folder: &Path) -> Result<File, JournalError> {
    let path = folder.join("lock");
    let failed = |error| JournalError::Io {
        doing: "lock",
        path: path.clone(),
        error,
    };
    let file = private_file(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
