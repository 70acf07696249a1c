//! The buffer that all output passes through.
//!
//! Guarantees: messages are written in the order of the calls, one line each, whole or not at
//! all. Senders wait while more than the high-water mark is unsent, so a peer that does not
//! read costs bounded memory; waiting senders take turns. A message that was accepted is
//! written unless the output fails.
//! The connection's loop empties the buffer with one write for everything since the last.

use std::task::Waker;

use tokio::sync::Semaphore;

use crate::error::{CloseReason, Error, Result};
use crate::json::{Encode, EncodeError};
use crate::sync::{Mutex, MutexGuard, Notify, PoisonError};

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Notified when the buffer has been taken, or will never be again.
    drained: Notify,
    /// Held by the first waiting sender.
    turns: Semaphore,
    high_water: usize,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    /// Number of bytes that are whole messages: all, unless one is being serialized.
    whole: usize,
    /// Bytes added above the high-water mark by senders that cannot wait.
    excess: usize,
    /// Wakes the connection's loop.
    writer: Option<Waker>,
    /// Whether the loop waits to be woken. While it runs, it looks here before it waits.
    waiting: bool,
    /// Whether there was anything to wake the loop for since its round began.
    news: bool,
    closed: Option<CloseReason>,
    /// Everything is to be written and the output closed after it, for this reason.
    finishing: Option<CloseReason>,
    /// The whole connection is to be closed.
    close_requested: bool,
}

/// What [`Outbox::take`] has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Messages to write.
    Batch,
    /// Nothing so far.
    Nothing,
    /// Nothing, and nothing will follow.
    Finished,
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

    /// Waits until the buffer has capacity for another message.
    ///
    /// Waiting senders take turns in order, so a sender without pauses fills the buffer once and
    /// then waits behind the others.
    pub(crate) async fn wait_for_capacity(&self) -> Result<()> {
        if self.has_room()? {
            return Ok(());
        }
        // Boxed to keep the common future small: most senders do not wait.
        Box::pin(self.turn()).await
    }

    async fn turn(&self) -> Result<()> {
        // Never closed, so this never fails.
        let _turn = self.turns.acquire().await;
        loop {
            // Created before the check: it is notified of everything from now on.
            let drained = self.drained.notified();
            if self.has_room()? {
                return Ok(());
            }
            drained.await;
        }
    }

    pub(crate) fn has_room(&self) -> Result<bool> {
        Ok(self.accepting()?.bytes.len() < self.high_water)
    }

    /// Appends a message, whether or not there is capacity.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection has ended, [`Error::Encode`] when
    /// the message cannot be serialized; nothing is appended then.
    pub(crate) fn push(&self, method: &str, message: &dyn Encode) -> Result<()> {
        let mut state = self.accepting()?;
        let full = state.bytes.len() >= self.high_water;
        let before = state.bytes.len();
        state.write(method, message)?;
        if full {
            state.excess += state.bytes.len() - before;
        }
        wake(state);
        Ok(())
    }

    /// Moves everything unsent to the loop by exchanging buffers.
    ///
    /// Once nothing is left after [`finish`](Self::finish), nothing more is accepted. This is
    /// decided under the lock that senders take, so a message is either written or refused.
    pub(crate) fn take(&self, batch: &mut Vec<u8>) -> Taken {
        let mut state = self.lock();
        if state.bytes.is_empty() {
            let Some(reason) = state.finishing.clone() else {
                return Taken::Nothing;
            };
            state.closed.get_or_insert(reason);
            drop(state);
            self.drained.notify_waiters();
            return Taken::Finished;
        }
        batch.clear();
        std::mem::swap(batch, &mut state.bytes);
        (state.whole, state.excess) = (0, 0);
        let full = batch.len() >= self.high_water;
        drop(state);
        if full {
            self.drained.notify_waiters();
        }
        Taken::Batch
    }

    /// Begins a round of the loop. Until [`wait`](Self::wait), what is sent does not wake it: a
    /// task that wakes itself is polled again for nothing, and on a runtime with several threads
    /// wakes another thread as well.
    pub(crate) fn begin_round(&self) {
        let mut state = self.lock();
        (state.waiting, state.news) = (false, false);
    }

    /// Wakes `waker` at the next message. Returns `false`, and does not, when there was one since
    /// the round began.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if !state.news {
            state.wake_later(waker);
        }
        state.waiting
    }

    /// Wakes `waker` at the next message. Called before the last check of the buffer.
    pub(crate) fn register(&self, waker: &Waker) {
        self.lock().wake_later(waker);
    }

    /// Wakes the loop although there is nothing to send.
    pub(crate) fn wake_driver(&self) {
        wake(self.lock());
    }

    /// Returns the unsent bytes of senders that did not wait for capacity.
    ///
    /// The output of other senders does not count: two peers that both stop reading while they
    /// write large messages would deadlock.
    pub(crate) fn excess(&self) -> usize {
        self.lock().excess
    }

    /// Asks the loop to write what there is and then to close the output. The first reason counts.
    pub(crate) fn finish(&self, reason: CloseReason) {
        let mut state = self.lock();
        if state.finishing.is_none() {
            state.finishing = Some(reason);
            wake(state);
        }
    }

    /// Refuses everything from now on, and closes the output once what was accepted is written.
    /// Returns whether this is news.
    pub(crate) fn seal(&self, reason: &CloseReason) -> bool {
        let mut state = self.lock();
        let news = state.closed.is_none();
        state.closed.get_or_insert_with(|| reason.clone());
        state.finishing.get_or_insert_with(|| reason.clone());
        drop(state);
        self.drained.notify_waiters();
        news
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.lock().bytes.is_empty()
    }

    /// Asks the loop to close the connection.
    pub(crate) fn request_close(&self) {
        let mut state = self.lock();
        state.close_requested = true;
        wake(state);
    }

    pub(crate) fn close_requested(&self) -> bool {
        self.lock().close_requested
    }

    /// Refuses everything from now on and discards what is unsent.
    pub(crate) fn close(&self, reason: &CloseReason) {
        let mut state = self.lock();
        state.closed.get_or_insert_with(|| reason.clone());
        (state.bytes, state.whole, state.excess) = (Vec::new(), 0, 0);
        drop(state);
        self.drained.notify_waiters();
    }

    /// Returns the state, unless the outbox is closed.
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
    fn wake_later(&mut self, waker: &Waker) {
        self.waiting = true;
        match &mut self.writer {
            Some(registered) => registered.clone_from(waker),
            none => *none = Some(waker.clone()),
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

/// Releases the lock, then wakes the loop if it waits.
fn wake(mut state: MutexGuard<'_, State>) {
    state.news = true;
    let waiting = std::mem::take(&mut state.waiting);
    let writer = if waiting { state.writer.take() } else { None };
    drop(state);
    if let Some(writer) = writer {
        writer.wake();
    }
}

/// Creates the error for a message that cannot be serialized.
fn unwritable(method: &str, error: &EncodeError) -> Error {
    Error::Encode {
        method: method.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use serde_core::Serialize;

    use super::*;

    /// Counts how often the loop is woken.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_loop_is_not_woken_by_finishing_again() {
        let outbox = Outbox::new(100);
        let wakes = Arc::new(Wakes::default());
        for _ in 0..3 {
            outbox.register(&wakes.clone().into());
            outbox.finish(CloseReason::EndOfInput);
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_loop_is_woken_while_it_waits_and_not_while_it_runs() {
        let outbox = Outbox::new(100);
        let wakes = Arc::new(Wakes::default());
        let waker = wakes.clone().into();
        outbox.begin_round();
        assert!(outbox.wait(&waker));
        outbox.begin_round();
        outbox.push("x", &1).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        assert!(
            !outbox.wait(&waker),
            "nobody would wake it for this message"
        );
        outbox.begin_round();
        assert!(outbox.wait(&waker));
        outbox.push("x", &2).unwrap();
        outbox.push("x", &3).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn raw_json_over_several_lines_leaves_as_one() {
        let raw: Box<serde_json::value::RawValue> =
            serde_json::from_str("{\n \"a\": [\n1]\n}").unwrap();
        let outbox = Outbox::new(100);
        outbox.push("x", &raw).unwrap();
        let mut batch = Vec::new();
        assert_eq!(outbox.take(&mut batch), Taken::Batch);
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
        assert_eq!(outbox.take(&mut batch), Taken::Batch);
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
        assert_eq!(outbox.take(&mut batch), Taken::Batch);
        assert_eq!(batch, b"1\n2\n");
    }

    #[tokio::test]
    async fn senders_wait_at_the_high_water_mark() {
        let outbox = Outbox::new(4);
        outbox.push("x", &1).unwrap();
        assert!(outbox.has_room().unwrap());
        // With the line feeds they are four bytes, which is the mark.
        outbox.push("x", &2).unwrap();
        let mut waiting = std::pin::pin!(outbox.wait_for_capacity());
        assert!(futures_poll(waiting.as_mut()).is_none());
        let mut batch = Vec::new();
        assert_eq!(outbox.take(&mut batch), Taken::Batch);
        assert!(matches!(futures_poll(waiting), Some(Ok(()))));
    }

    #[tokio::test]
    async fn closing_ends_the_wait() {
        let outbox = Outbox::new(1);
        outbox.push("x", &1).unwrap();
        let mut waiting = std::pin::pin!(outbox.wait_for_capacity());
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
