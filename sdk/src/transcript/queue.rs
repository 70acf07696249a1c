//! The queue of records to be written to a transcript.
//!
//! Bounded in bytes. Records that do not fit are counted, and the count is queued in their
//! place, so that readers see the gap.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::Side;

/// The limit of the queue. A single message may be larger.
const MAX_BYTES: usize = 4 << 20;

/// The cost of a record besides its text.
const OVERHEAD: usize = 64;

/// Output of one side.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) from: Side,
    pub(super) at: SystemTime,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Text(Box<[u8]>),
    /// Skipped input, with the reason.
    Skipped(String),
    /// The number of messages that did not fit.
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
    /// Appends a record, or counts it as lost. Never waits.
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

    /// Waits for records and takes all of them; `None` after the last.
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

    /// Refuses further records. Queued ones can still be taken.
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
