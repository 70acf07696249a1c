//! Restoring the files of a turn.

use acp_sdk::extensions::{RestorationOutcome, RestoredFile, TurnRestoration};

use super::journal::Journal;
use super::place::Place;
use super::state::State;
use super::turns::Record;
use super::{Direction, JournalError};

/// What is to be done with a file.
enum Plan {
    /// It is what it shall be.
    Unchanged,
    Restore(Place),
    /// Something else is in its place.
    Overwrite(Place, State),
    /// It is not touched, for a reason.
    Skip(RestorationOutcome, String),
}

impl Journal {
    /// Restores the files of the newest turn; see [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn undo(&mut self, force: bool) -> Result<TurnRestoration, JournalError> {
        self.restore(Direction::Undo, force)
    }

    /// Brings back what the latest undo replaced; see [`restore`](Self::restore).
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn redo(&mut self, force: bool) -> Result<TurnRestoration, JournalError> {
        self.restore(Direction::Redo, force)
    }

    /// Restores the files of a turn, all or none: when one was changed by somebody else, or its place
    /// cannot be used, no file is touched, and the turn can be tried again. With `force`, changes of
    /// others are overwritten, and the opposite move brings them back; what cannot be restored is
    /// left out.
    ///
    /// A failure of the system while files are restored leaves some of them restored. The answer
    /// says so, and another call continues.
    ///
    /// # Errors
    ///
    /// [`JournalError::TurnOpen`] during a turn, [`JournalError::Nothing`] without one to restore,
    /// and [`JournalError::Io`].
    pub fn restore(
        &mut self,
        direction: Direction,
        force: bool,
    ) -> Result<TurnRestoration, JournalError> {
        if self.turns.open {
            return Err(JournalError::TurnOpen);
        }
        let next = self.turns.next(direction);
        let number = next.ok_or(JournalError::Nothing(direction))?;
        let turn = self.turns.list[number].clone();
        let targets: Vec<_> = turn
            .files
            .iter()
            .map(|file| match direction {
                Direction::Undo => (file.path.as_str(), &file.after, &file.before),
                Direction::Redo => (file.path.as_str(), &file.before, &file.after),
            })
            .collect();
        // What is overwritten is kept, so it is bounded, too.
        let mut room = self.limits.total_bytes;
        let mut plans = Vec::new();
        for (path, from, to) in &targets {
            let mut plan = self.plan(path, from, to, force);
            if let Plan::Overwrite(_, current) = &plan
                && let Some((_, size)) = current.blob()
            {
                match room.checked_sub(size) {
                    Some(rest) => room = rest,
                    None => {
                        let reason =
                            "it was changed after the turn, and there is no room to keep it";
                        plan = Plan::Skip(RestorationOutcome::Conflict, reason.to_owned());
                    }
                }
            }
            plans.push(plan);
        }
        let blocked = |plan: &Plan| match plan {
            Plan::Skip(outcome, _) => *outcome != RestorationOutcome::Left,
            _ => false,
        };
        let blocked = !force && plans.iter().any(blocked);
        if !blocked {
            self.keep_replaced(direction, &plans)?;
        }
        let mut is_whole = !blocked;
        let mut files = Vec::new();
        for ((path, _, to), plan) in targets.into_iter().zip(plans) {
            let (outcome, reason) = match plan {
                Plan::Unchanged => (RestorationOutcome::Unchanged, None),
                Plan::Skip(outcome, reason) => (outcome, Some(reason)),
                _ if blocked => (RestorationOutcome::Pending, None),
                Plan::Restore(place) => self.restore_file(&place, to, None),
                Plan::Overwrite(place, ..) => {
                    self.restore_file(&place, to, Some(RestorationOutcome::Overwritten))
                }
            };
            is_whole &= force || outcome != RestorationOutcome::Failed;
            let mut file = RestoredFile::new(path, outcome);
            file.reason = reason;
            files.push(file);
        }
        if is_whole {
            self.moved(direction)?;
        }
        let (undoable, redoable) = (self.undoable() as u64, self.redoable() as u64);
        let mut restoration = TurnRestoration::new(is_whole, files, undoable, redoable);
        restoration.turn = Some(turn.name);
        Ok(restoration)
    }

    fn plan(&self, path: &str, from: &State, to: &State, force: bool) -> Plan {
        if let Some(reason) = from.unkept().or_else(|| to.unkept()) {
            return Plan::Skip(RestorationOutcome::Left, reason);
        }
        let failed = |reason| Plan::Skip(RestorationOutcome::Failed, reason);
        let place = match self.roots.same_place(path) {
            Ok(place) => place,
            Err(reason) => return failed(reason),
        };
        let current = match place.state(self.limits.file_bytes) {
            Ok((current, _)) => current,
            Err(error) => return failed(error.to_string()),
        };
        if current == *to {
            Plan::Unchanged
        } else if current == *from {
            Plan::Restore(place)
        } else if let Some(reason) = current.unkept() {
            // Overwritten, it could not be brought back.
            Plan::Skip(RestorationOutcome::Conflict, reason)
        } else if force {
            Plan::Overwrite(place, current)
        } else {
            let reason = "it was changed after the turn".to_owned();
            Plan::Skip(RestorationOutcome::Conflict, reason)
        }
    }

    /// Keeps what is about to be overwritten, before anything is.
    fn keep_replaced(&mut self, direction: Direction, plans: &[Plan]) -> Result<(), JournalError> {
        let mut files = Vec::new();
        for (number, plan) in plans.iter().enumerate() {
            if let Plan::Overwrite(place, _) = plan {
                let current = place.state(self.limits.file_bytes);
                let (current, content) = current.map_err(|error| JournalError::Path {
                    path: place.path.clone(),
                    reason: error.to_string(),
                })?;
                if let Some((hash, _)) = current.blob() {
                    self.blobs.put(hash, &content)?;
                }
                files.push((number, current));
            }
        }
        match files.is_empty() {
            true => Ok(()),
            false => self.record(Record::Replaced { direction, files }),
        }
    }

    fn restore_file(
        &self,
        place: &Place,
        to: &State,
        success: Option<RestorationOutcome>,
    ) -> (RestorationOutcome, Option<String>) {
        match place.restore(to, &self.blobs) {
            Ok(()) => {
                let outcome = match to {
                    State::Absent => RestorationOutcome::Removed,
                    _ => RestorationOutcome::Restored,
                };
                (success.unwrap_or(outcome), None)
            }
            Err(reason) => (RestorationOutcome::Failed, Some(reason)),
        }
    }
}
