//! The turns of a journal, as its records say. No I/O.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Direction;
use super::state::State;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Record {
    /// A turn begins; undone ones are dropped.
    Begin { turn: String },
    /// What a path was when the turn was about to change it.
    Before { path: String, state: State },
    /// What the paths were when the turn ended, in the order of `Before`.
    End { after: Vec<State> },
    /// What stood in the place of what the next move expects there, by the number of the path.
    Replaced {
        direction: Direction,
        files: Vec<(usize, State)>,
    },
    /// The newest turn was undone, or the latest undone one redone.
    Moved { direction: Direction },
    /// The oldest turns were dropped.
    Dropped { count: usize },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) name: String,
    pub(super) files: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) before: State,
    /// The same as before until the turn ends.
    pub(super) after: State,
}

/// The turns, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Turns {
    pub(super) list: Vec<Turn>,
    /// Those behind are undone; or the first of them is open.
    pub(super) done: usize,
    pub(super) open: bool,
}

impl Turns {
    /// Returns the turn that a move is about.
    pub(super) fn next(&self, direction: Direction) -> Option<usize> {
        match direction {
            Direction::Undo => self.done.checked_sub(1),
            Direction::Redo => (self.done < self.list.len()).then_some(self.done),
        }
    }

    pub(super) fn open_turn(&self) -> Option<&Turn> {
        self.list.get(self.done).filter(|_| self.open)
    }

    /// Applies a record. One that makes no sense, which nobody writes, does nothing.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Begin { turn } if !self.open => {
                self.list.truncate(self.done);
                let (name, files) = (turn, Vec::new());
                self.list.push(Turn { name, files });
                self.open = true;
            }
            Record::Before { path, state } if self.open => {
                if let Some(turn) = self.list.last_mut() {
                    let (before, after) = (state.clone(), state);
                    turn.files.push(Change {
                        path,
                        before,
                        after,
                    });
                }
            }
            Record::End { after } if self.open => {
                self.open = false;
                let Some(mut turn) = self.list.pop() else {
                    return;
                };
                for (file, after) in turn.files.iter_mut().zip(after) {
                    file.after = after;
                }
                turn.files.retain(|file| file.before != file.after);
                if !turn.files.is_empty() {
                    self.list.push(turn);
                    self.done += 1;
                }
            }
            Record::Replaced { direction, files } => {
                let next = self.next(direction);
                let Some(turn) = next.and_then(|next| self.list.get_mut(next)) else {
                    return;
                };
                for (number, state) in files {
                    if let Some(file) = turn.files.get_mut(number) {
                        match direction {
                            Direction::Undo => file.after = state,
                            Direction::Redo => file.before = state,
                        }
                    }
                }
            }
            Record::Moved { direction } if !self.open && self.next(direction).is_some() => {
                match direction {
                    Direction::Undo => self.done -= 1,
                    Direction::Redo => self.done += 1,
                }
            }
            Record::Dropped { count } if count <= self.done => {
                self.list.drain(..count);
                self.done -= count;
            }
            _ => {}
        }
    }

    /// Returns the records that lead to this state.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (number, turn) in self.list.iter().enumerate() {
            let name = turn.name.clone();
            records.push(Record::Begin { turn: name });
            records.extend(turn.files.iter().map(|file| Record::Before {
                path: file.path.clone(),
                state: file.before.clone(),
            }));
            if !self.open || number < self.done {
                let after = turn.files.iter().map(|file| file.after.clone());
                records.push(Record::End {
                    after: after.collect(),
                });
            }
        }
        if !self.open {
            let direction = Direction::Undo;
            let undone = self.list.len() - self.done;
            records.extend(std::iter::repeat_n(Record::Moved { direction }, undone));
        }
        records
    }

    /// Returns the sizes of the kept contents by their hashes.
    pub(super) fn blobs(&self) -> HashMap<&str, u64> {
        let files = self.list.iter().flat_map(|turn| &turn.files);
        let states = files.flat_map(|file| [&file.before, &file.after]);
        states.filter_map(State::blob).collect()
    }
}
