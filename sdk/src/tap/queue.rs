//! What waits to be written to a transcript.
//!
//! Bounded in bytes. What does not fit is counted, and the count takes its place, so that a
//! reader sees where the gap is.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::Side;

/// How much may wait. A single message may be larger.
const MAX_BYTES: usize = 4 << 20;

/// What a record costs besides its text.
const OVERHEAD: usize = 64;

/// Something one side wrote.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) from: Side,
    pub(super) at: SystemTime,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Text(Box<[u8]>),
    /// No message, for this reason, and no longer at hand.
    Skipped(String),
    /// So many messages did not fit.
    Lost(u64),
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<Record>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    /// Puts a record at the end, or counts it as lost. Never waits.
    pub(super) fn push(&self, record: Record) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let size = OVERHEAD
            + match &record.content {
                Content::Text(text) => text.len(),
                Content::Skipped(why) => why.len(),
                Content::Lost(_) => 0,
            };
        if state.records.is_empty() || state.bytes + size <= MAX_BYTES {
            state.bytes += size;
            state.records.push_back(record);
        } else {
            state.lose(record);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Everything that waits, as soon as there is something; `None` when nothing will come.
    pub(super) fn take(&self) -> Option<VecDeque<Record>> {
        let mut state = self.lock();
        while state.records.is_empty() {
            if state.closed {
                return None;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = 0;
        Some(std::mem::take(&mut state.records))
    }

    /// Takes nothing in any more; what waits can still be taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lose(&mut self, record: Record) {
        // At most the last two records are counts, one for each side.
        let counts = self.records.iter_mut().rev().take(2);
        for last in counts {
            match &mut last.content {
                Content::Lost(lost) if last.from == record.from => {
                    *lost += 1;
                    return;
                }
                Content::Lost(_) => {}
                _ => break,
            }
        }
        self.records.push_back(Record {
            content: Content::Lost(1),
            ..record
        });
    }
}
