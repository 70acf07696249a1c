//! Messages on their way to one side.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_sdk::push_line;
use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes from which on hooks wait, and the other side is not read.
const FULL: usize = 128 << 10;

/// A buffer whose senders wait while it is full. What the relay passes on is never refused: it reads
/// nothing while the buffer is full.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Each message with a line feed.
    lines: Vec<u8>,
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
                if state.is_closed || state.lines.len() < FULL {
                    return !state.is_closed;
                }
            }
            room.await;
        }
    }

    pub(crate) fn push(&self, message: &[u8]) {
        let mut state = self.lock();
        if !state.is_closed {
            push_line(&mut state.lines, message);
        }
    }

    /// Appends messages that have their line feeds.
    pub(crate) fn push_lines(&self, lines: &[u8]) {
        let mut state = self.lock();
        if !state.is_closed {
            state.lines.extend_from_slice(lines);
        }
    }

    /// Takes all messages.
    pub(crate) fn take(&self) -> Bytes {
        let lines = std::mem::take(&mut self.lock().lines);
        if lines.len() >= FULL {
            self.room.notify_waiters();
        }
        lines.into()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().lines.len() >= FULL
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().lines.is_empty()
    }

    /// Discards what waits, and refuses what comes.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.lines = Vec::new();
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
        outbox.push(&[b' '; FULL]);
        assert!(outbox.is_full());
        let freed = async { assert_eq!(outbox.take().len(), FULL + 1) };
        let (has_room, ()) = tokio::join!(outbox.wait_for_room(), freed);
        assert!(has_room && outbox.is_empty());
        outbox.push(&[b' '; FULL]);
        let (has_room, ()) = tokio::join!(outbox.wait_for_room(), async { outbox.close() });
        assert!(!has_room);
        outbox.push(b"late");
        assert!(outbox.is_empty());
    }
}
