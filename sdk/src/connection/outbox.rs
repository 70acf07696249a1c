//! The one buffer that everything we send goes through.
//!
//! Guarantees: messages leave in the order in which they were put in, one line
//! each, whole or not at all. Whoever sends waits while more than the high-water
//! mark is unsent, so that a peer that does not read costs bounded memory, and
//! those who wait take turns.
//! The buffer is emptied by the connection's loop with one write for all that
//! has gathered since the last.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::{Notify, Semaphore};

use super::coalesce::{self, EncodeAny};
use crate::error::{CloseReason, Error, Result};
use crate::json::{Encode, EncodeError};
use crate::jsonrpc::Notification;
use crate::runtime::Notification as _;
use crate::v1::{SessionNotification, methods};

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Told whenever the buffer has been taken, or will never be again.
    drained: Notify,
    /// Held by the sender who is next when the buffer has been taken.
    turns: Semaphore,
    high_water: usize,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// So many of them are whole messages: all, unless one is being written.
    whole: usize,
    /// So many were put in by those who could not wait, when there was no room any more.
    excess: usize,
    /// The last message, not yet written as JSON because more text may join it.
    open: Option<Open>,
    /// The connection's loop, when it sleeps.
    writer: Option<Waker>,
    closed: Option<CloseReason>,
    /// Everything is to be written and the stream closed after it.
    finishing: bool,
}

/// A chunk that more text may join.
#[derive(Debug)]
struct Open {
    note: Box<SessionNotification>,
    encode: EncodeAny,
}

impl Encode for Open {
    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        (self.encode)(&*self.note, bytes)
    }
}

impl Outbox {
    pub(crate) fn new(high_water: usize) -> Self {
        Self {
            state: Mutex::default(),
            drained: Notify::new(),
            turns: Semaphore::new(1),
            high_water,
        }
    }

    /// Waits until there is room for another message.
    ///
    /// Senders that have to wait get their turns in the order in which they came, so that one
    /// who sends without pause fills the buffer once and then stands behind the others.
    pub(crate) async fn room(&self) -> Result<()> {
        if self.has_room()? {
            return Ok(());
        }
        // Boxed to keep the futures of those small who send while there is room: most.
        Box::pin(self.turn()).await
    }

    async fn turn(&self) -> Result<()> {
        // Never closed, so this never fails.
        let _turn = self.turns.acquire().await;
        loop {
            // Made before the look: it is told of what happens from now on.
            let drained = self.drained.notified();
            if self.has_room()? {
                return Ok(());
            }
            drained.await;
        }
    }

    fn has_room(&self) -> Result<bool> {
        Ok(self.accepting()?.unsent() < self.high_water)
    }

    /// Puts a message at the end, whether or not there is room.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended, [`Error::Encode`] when
    /// the message has no JSON form; nothing has been put in then.
    pub(crate) fn push(&self, method: &str, message: &dyn Encode) -> Result<()> {
        let mut state = self.accepting()?;
        let full = state.unsent() >= self.high_water;
        state.write_open();
        let before = state.bytes.len();
        state.write(method, message)?;
        if full {
            state.excess += state.bytes.len() - before;
        }
        wake(state);
        Ok(())
    }

    /// Puts a text chunk at the end, or its text to the one that is there. `encode` writes it.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended.
    pub(crate) fn push_chunk(&self, note: &SessionNotification, encode: EncodeAny) -> Result<()> {
        let mut state = self.accepting()?;
        let joined = state
            .open
            .as_mut()
            .is_some_and(|open| coalesce::join(&mut open.note, note));
        if !joined {
            state.write_open();
            let note = Box::new(note.clone());
            state.open = Some(Open { note, encode });
        }
        wake(state);
        Ok(())
    }

    /// Hands everything unsent to the loop by exchanging buffers; `false` if there is nothing.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        state.write_open();
        if state.bytes.is_empty() {
            return false;
        }
        batch.clear();
        std::mem::swap(batch, &mut state.bytes);
        (state.whole, state.excess) = (0, 0);
        let full = batch.len() >= self.high_water;
        drop(state);
        if full {
            self.drained.notify_waiters();
        }
        true
    }

    /// Wakes `waker` at the next message; to be called before the last look at the buffer.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut state = self.lock();
        match &mut state.writer {
            Some(registered) => registered.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Wakes the loop although there is nothing to send.
    pub(crate) fn nudge(&self) {
        wake(self.lock());
    }

    /// Unsent bytes of those who did not wait for room.
    ///
    /// What others have sent is not counted, however much it is: two peers that stopped reading
    /// because they write, both of them large messages, would wait for each other for ever.
    pub(crate) fn excess(&self) -> usize {
        self.lock().excess
    }

    /// Asks the loop to write what there is and to close the stream.
    pub(crate) fn finish(&self) {
        self.lock().finishing = true;
        self.nudge();
    }

    pub(crate) fn is_finishing(&self) -> bool {
        self.lock().finishing
    }

    /// Refuses everything from now on; what is still unsent can be taken.
    pub(crate) fn close(&self, reason: &CloseReason) {
        self.lock().closed.get_or_insert_with(|| reason.clone());
        self.drained.notify_waiters();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().closed.is_none()
    }

    /// The state, unless nothing is taken any more.
    fn accepting(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        match &state.closed {
            Some(closed) => Err(Error::Closed(closed.clone())),
            None => Ok(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a Serialize implementation leaves half a message.
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = PoisonError::into_inner(poisoned);
            let whole = state.whole;
            state.bytes.truncate(whole);
            self.state.clear_poison();
            state
        })
    }
}

impl State {
    fn unsent(&self) -> usize {
        self.bytes.len()
            + self
                .open
                .as_ref()
                .map_or(0, |open| coalesce::text_bytes(&open.note))
    }

    /// Ends the chunk that texts were joined to.
    fn write_open(&mut self) {
        if let Some(open) = self.open.take() {
            let method = methods::SessionUpdate::NAME;
            let message = Notification::new(method, Some(&open));
            // Strings always have a JSON form.
            let _ = self.write(method, &message);
        }
    }

    fn write(&mut self, method: &str, message: &dyn Encode) -> Result<()> {
        let begin = self.bytes.len();
        if let Err(error) = message.encode(&mut self.bytes) {
            self.bytes.truncate(begin);
            return Err(unwritable(method, &error));
        }
        // Raw JSON from the application may be spread over lines; between tokens a blank
        // means the same, and within strings JSON has no bare line feeds.
        let mut from = begin;
        while let Some(at) = memchr::memchr(b'\n', &self.bytes[from..]) {
            self.bytes[from + at] = b' ';
            from += at + 1;
        }
        self.bytes.push(b'\n');
        self.whole = self.bytes.len();
        Ok(())
    }
}

/// Wakes the loop, once the lock is given back.
fn wake(mut state: MutexGuard<'_, State>) {
    let writer = state.writer.take();
    drop(state);
    if let Some(writer) = writer {
        writer.wake();
    }
}

/// Why a message could not be written.
pub(crate) fn unwritable(method: &str, error: &EncodeError) -> Error {
    Error::Encode {
        method: method.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_core::Serialize;

    use super::*;

    #[test]
    fn raw_json_over_several_lines_leaves_as_one() {
        let raw: Box<serde_json::value::RawValue> =
            serde_json::from_str("{\n \"a\": [\n1]\n}").unwrap();
        let outbox = Outbox::new(100);
        outbox.push("x", &raw).unwrap();
        let mut batch = Vec::new();
        assert!(outbox.take(&mut batch));
        assert_eq!(batch, b"{  \"a\": [ 1] }\n");
    }

    #[test]
    fn a_message_that_fails_half_way_leaves_nothing() {
        let outbox = Outbox::new(100);
        outbox.push("x", &1).unwrap();
        let bad = std::collections::BTreeMap::from([(vec![1], 2)]);
        let error = outbox.push("x", &(1, bad)).unwrap_err();
        assert!(matches!(error, Error::Encode { method, .. } if method == "x"));
        outbox.push("x", &2).unwrap();
        let mut batch = Vec::new();
        assert!(outbox.take(&mut batch));
        assert_eq!(batch, b"1\n2\n");
    }

    #[test]
    fn a_panicking_message_leaves_nothing_and_the_next_one_goes_out() {
        struct Bomb;
        impl Serialize for Bomb {
            fn serialize<S: serde_core::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("a fault in the application")
            }
        }
        let outbox = Outbox::new(100);
        outbox.push("x", &1).unwrap();
        // What is already there of it has line feeds of its own.
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str("[\n7]").unwrap();
        let push = std::panic::AssertUnwindSafe(|| outbox.push("x", &(raw, Bomb)));
        assert!(std::panic::catch_unwind(push).is_err());
        outbox.push("x", &2).unwrap();
        let mut batch = Vec::new();
        assert!(outbox.take(&mut batch));
        assert_eq!(batch, b"1\n2\n");
    }

    #[tokio::test]
    async fn senders_wait_at_the_high_water_mark() {
        let outbox = Outbox::new(4);
        outbox.push("x", &1).unwrap();
        assert!(outbox.has_room().unwrap());
        // With the line feeds they are four bytes, which is the mark.
        outbox.push("x", &2).unwrap();
        let mut waiting = std::pin::pin!(outbox.room());
        assert!(futures_poll(waiting.as_mut()).is_none());
        let mut batch = Vec::new();
        assert!(outbox.take(&mut batch));
        assert!(matches!(futures_poll(waiting), Some(Ok(()))));
    }

    #[tokio::test]
    async fn closing_ends_the_wait() {
        let outbox = Outbox::new(1);
        outbox.push("x", &1).unwrap();
        let mut waiting = std::pin::pin!(outbox.room());
        assert!(futures_poll(waiting.as_mut()).is_none());
        outbox.close(&CloseReason::EndOfInput);
        assert!(matches!(futures_poll(waiting), Some(Err(Error::Closed(_)))));
        assert!(matches!(outbox.push("x", &1), Err(Error::Closed(_))));
    }

    fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        let mut cx = std::task::Context::from_waker(Waker::noop());
        match future.poll(&mut cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}
