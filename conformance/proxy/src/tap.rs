//! Copies of what is forwarded, on their way to the judge: bounded, in order, and
//! not in the way, unless nothing may be lost.
//!
//! A copy is put in before its bytes are forwarded, so an answer cannot overtake
//! its request; the judge is woken afterwards, because waking takes longer than
//! copying. When the copies that wait exceed the limit, bytes are dropped and
//! their lines counted; a [`Entry::Gap`] stands where they were. A patient tap waits
//! for room instead, which slows its peer down. Together with the batch that the
//! judge works on, at most twice the limit is held.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use acp_conformance::wire::Party;

/// What an entry weighs besides its bytes.
const OVERHEAD: usize = 96;

/// How long a patient tap waits for room: a judge that takes nothing for so long is
/// stuck, in a log that nobody reads for instance, and the wire must not be.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something that happened on the wire.
#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    /// A party wrote bytes.
    Bytes(Party, SystemTime, Vec<u8>),
    /// Bytes of a party were dropped here.
    Gap {
        /// Who wrote them.
        from: Party,
        /// How many lines ended in them.
        lines: u64,
        /// Whether the last dropped line goes on after the gap.
        open: bool,
    },
    /// A party will write no more.
    End(Party),
}

#[derive(Debug)]
pub(super) struct Tap {
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
    limit: usize,
    /// How long whoever puts in waits for room, if at all.
    patience: Option<Duration>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Entry>,
    /// Where the last entry of the agent and of the client is a gap.
    gaps: [Option<usize>; 2],
    weight: usize,
    closed: bool,
    /// Whether nothing was taken for so long that nobody waits for it any more.
    stuck: bool,
}

impl Tap {
    /// A tap that lets copies of about `limit` bytes wait, and counts what comes
    /// beyond that.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Condvar::new(),
            limit,
            patience: None,
        }
    }

    /// A tap that loses nothing: what comes beyond the limit waits for room.
    pub(super) fn patient(limit: usize) -> Self {
        Self {
            patience: Some(PATIENCE),
            ..Self::new(limit)
        }
    }

    /// Puts in a copy of what a party wrote, or counts it when there is no room.
    pub(super) fn put(&self, from: Party, bytes: &[u8]) {
        let now = SystemTime::now();
        // Most of the work is done before the lock is taken.
        let copy = bytes.to_vec();
        let mut state = self.lock();
        // One copy fits into an empty tap, however long it is; nobody takes any from a
        // closed one.
        let full = |state: &mut State| {
            !state.closed
                && !state.stuck
                && !state.waiting.is_empty()
                && state.weight + bytes.len() + OVERHEAD > self.limit
        };
        if let Some(patience) = self.patience
            && full(&mut state)
        {
            // The judge may sleep: it is woken only after what was put in is forwarded.
            self.wake();
            let waited = self.drained.wait_timeout_while(state, patience, full);
            let (after, room) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.stuck |= room.timed_out();
        }
        let state = &mut *state;
        let gap = match from {
            Party::Agent => &mut state.gaps[0],
            Party::Client => &mut state.gaps[1],
        };
        let weight = bytes.len() + OVERHEAD;
        if state.weight + weight <= self.limit
            || (self.patience.is_some() && state.waiting.is_empty())
        {
            state.weight += weight;
            state.waiting.push(Entry::Bytes(from, now, copy));
            *gap = None;
            return;
        }
        let ended = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let cut = !bytes.ends_with(b"\n");
        let last = gap.and_then(|index| state.waiting.get_mut(index));
        if let Some(Entry::Gap { lines, open, .. }) = last {
            *lines += ended;
            *open = cut;
        } else {
            *gap = Some(state.waiting.len());
            state.waiting.push(Entry::Gap {
                from,
                lines: ended,
                open: cut,
            });
        }
    }

    /// Tells that a party will write no more.
    pub(super) fn end(&self, from: Party) {
        self.lock().waiting.push(Entry::End(from));
        self.wake();
    }

    /// Wakes the judge, if it sleeps.
    pub(super) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Nothing will be put in any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.wake();
        self.drained.notify_all();
    }

    /// Whether nothing will be put in any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether nothing waits at this moment.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Waits for entries and takes all there are; false when it is closed and empty.
    pub(super) fn take(&self, batch: &mut Vec<Entry>) -> bool {
        batch.clear();
        let mut state = self.lock();
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.waiting, batch);
        state.weight = 0;
        state.stuck = false;
        state.gaps = [None; 2];
        self.drained.notify_all();
        true
    }

    /// A std mutex suffices: it is held for a few instructions.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for two short entries.
    const LIMIT: usize = 2 * (OVERHEAD + 8);

    fn contents(tap: &Tap) -> Vec<String> {
        let mut batch = Vec::new();
        tap.take(&mut batch);
        let text = |entry: &Entry| match entry {
            Entry::Bytes(from, _, bytes) => format!("{from} {}", String::from_utf8_lossy(bytes)),
            Entry::Gap { from, lines, open } => format!("{from} gap {lines} {open}"),
            Entry::End(from) => format!("{from} end"),
        };
        batch.iter().map(text).collect()
    }

    #[test]
    fn copies_come_out_in_order() {
        let tap = Tap::new(LIMIT);
        tap.put(Party::Client, b"a\n");
        tap.put(Party::Agent, b"b\n");
        tap.end(Party::Agent);
        assert_eq!(contents(&tap), ["client a\n", "agent b\n", "agent end"]);
    }

    #[test]
    fn what_does_not_fit_is_counted_by_party_and_there_is_room_again() {
        let tap = Tap::new(LIMIT);
        tap.put(Party::Client, b"a\n");
        tap.put(Party::Agent, b"b\n");
        for bytes in [b"c\nd\ne".as_slice(), b"f", b"g\nh"] {
            tap.put(Party::Agent, bytes);
        }
        tap.put(Party::Client, b"i\n");
        assert_eq!(
            contents(&tap),
            [
                "client a\n",
                "agent b\n",
                "agent gap 3 true",
                "client gap 1 false"
            ]
        );
        tap.put(Party::Agent, b"j\n");
        assert_eq!(contents(&tap), ["agent j\n"]);
    }

    #[test]
    fn a_gap_after_a_copy_is_a_gap_of_its_own() {
        let tap = Tap::new(LIMIT);
        let long = [b'x'; LIMIT - OVERHEAD + 1];
        tap.put(Party::Agent, &long);
        tap.put(Party::Agent, b"\na\n");
        tap.put(Party::Agent, &long);
        assert_eq!(
            contents(&tap),
            ["agent gap 0 true", "agent \na\n", "agent gap 0 true"]
        );
    }

    #[test]
    fn a_patient_tap_loses_nothing() {
        let tap = Tap::patient(LIMIT);
        let lines = std::thread::scope(|scope| {
            let puts = || {
                for number in 0..1000 {
                    tap.put(Party::Agent, format!("{number}\n").as_bytes());
                }
                tap.put(Party::Agent, &[b'x'; 2 * LIMIT]);
                tap.close();
            };
            scope.spawn(puts);
            let (mut lines, mut batch) = (0, Vec::new());
            while tap.take(&mut batch) {
                lines += batch.len();
                assert!(batch.iter().all(|entry| matches!(entry, Entry::Bytes(..))));
            }
            lines
        });
        assert_eq!(lines, 1001);
    }

    #[test]
    fn a_gap_is_not_looked_for_where_an_earlier_one_was() {
        let tap = Tap::new(LIMIT);
        for from in [Party::Client, Party::Client, Party::Agent] {
            tap.put(from, b"a\n");
        }
        assert_eq!(contents(&tap).len(), 3);
        for from in [Party::Client, Party::Client, Party::Client, Party::Agent] {
            tap.put(from, b"b\n");
        }
        let gaps = ["client gap 1 false", "agent gap 1 false"];
        assert_eq!(contents(&tap)[2..], gaps);
    }

    #[test]
    fn a_judge_that_is_stuck_is_waited_for_once() {
        let tap = Tap {
            patience: Some(Duration::from_millis(100)),
            ..Tap::new(LIMIT)
        };
        let started = std::time::Instant::now();
        for _ in 0..100 {
            tap.put(Party::Agent, b"a\n");
        }
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(contents(&tap).last().unwrap(), "agent gap 98 false");
    }

    #[test]
    fn a_closed_tap_is_emptied_and_then_ends() {
        let tap = Tap::new(LIMIT);
        tap.put(Party::Agent, b"a");
        tap.close();
        assert!(tap.take(&mut Vec::new()));
        assert!(!tap.take(&mut Vec::new()));
    }
}
