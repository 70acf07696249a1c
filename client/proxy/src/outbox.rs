//! Messages on their way to one side.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes from which on hooks wait, and the other side is not read.
const FULL: usize = 256 << 10;

/// A queue whose senders wait while it is full. What the relay passes on is never refused: it reads
/// nothing while the queue is full.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Bytes>,
    bytes: usize,
    is_closed: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; `false` if nothing is sent any more.
    pub(crate) async fn wait_for_room(&self) -> bool {
        loop {
            let room = self.room.notified();
            {
                let state = self.lock();
                if state.is_closed || state.bytes < FULL {
                    return !state.is_closed;
                }
            }
            room.await;
        }
    }

    pub(crate) fn push(&self, message: Bytes) {
        let mut state = self.lock();
        if !state.is_closed {
            state.bytes += message.len();
            state.queue.push_back(message);
        }
    }

    pub(crate) fn pop(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let message = state.queue.pop_front()?;
        let was_full = state.bytes >= FULL;
        state.bytes -= message.len();
        let has_room = was_full && state.bytes < FULL;
        drop(state);
        if has_room {
            self.room.notify_waiters();
        }
        Some(message)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes >= FULL
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().queue.is_empty()
    }

    /// Discards what waits, and refuses what comes.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        (state.queue, state.bytes) = (VecDeque::new(), 0);
        drop(state);
        self.room.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn senders_wait_for_room_and_for_the_end() {
        let outbox = Outbox::default();
        outbox.push(vec![b' '; FULL].into());
        assert!(outbox.is_full());
        let freed = async { assert!(outbox.pop().is_some()) };
        let (has_room, ()) = tokio::join!(outbox.wait_for_room(), freed);
        assert!(has_room && outbox.is_empty());
        outbox.push(vec![b' '; FULL].into());
        let (has_room, ()) = tokio::join!(outbox.wait_for_room(), async { outbox.close() });
        assert!(!has_room);
        outbox.push("late".into());
        assert!(outbox.is_empty());
    }
}
