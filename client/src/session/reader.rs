//! A reader of events, and the events that wait for it.
//!
//! Up to [`HIGH_WATER`] bytes are queued; delivering more waits. When a reader times out, events
//! are dropped until it has read its queue; it then receives their number.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::event::SessionEvent;

/// The number of queued bytes above which delivering an event waits.
pub(super) const HIGH_WATER: usize = 1 << 20;

/// The size that an event counts in addition to its content, in bytes: its place in the queue.
pub(super) const OVERHEAD: usize = size_of::<(SessionEvent, usize)>();

/// One reader's view of the events of a session.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    unread: Mutex<Unread>,
    /// Wakes tasks that wait for capacity, or until the reader waits.
    room: Notify,
}

#[derive(Debug, Default)]
struct Unread {
    queue: Queue<SessionEvent>,
    attention: Attention,
    /// Whether the queue has ended: no events follow.
    closed: bool,
    waker: Option<Waker>,
    /// Whether the reader has received all events and waits for the next.
    waits: bool,
    /// The number of events that the reader has received.
    taken: u64,
    /// The number of these that it had received when it last asked for the next one: it has processed
    /// them.
    processed: u64,
    /// The number of events that wait for capacity.
    coming: u64,
    /// The number of tasks that wait for `room`, those of `coming` included.
    watchers: u64,
    /// The number of events dropped since the reader timed out; 0 if it did not.
    missed: u64,
}

/// How events are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Attention {
    /// They are queued for the reader.
    #[default]
    Reads,
    /// They are discarded.
    Discards,
    /// The reader was dropped.
    Gone,
}

/// The result of delivering an event.
pub(super) enum Offer {
    Taken,
    NoRoom(SessionEvent),
    /// The reader was dropped or discards events.
    Refused(SessionEvent),
}

impl Reader {
    /// Creates a reader with queued events, after `missed` dropped ones.
    pub(super) fn starting_with(mut events: Queue<SessionEvent>, missed: u64) -> Self {
        if missed > 0 {
            events.push_front(SessionEvent::missed(missed), OVERHEAD);
        }
        let unread = Unread {
            queue: events,
            ..Unread::default()
        };
        Self {
            unread: Mutex::new(unread),
            room: Notify::new(),
        }
    }

    /// Queues an event, unless the queue is full.
    pub(super) fn offer(&self, event: SessionEvent, bytes: usize) -> Offer {
        let unread = self.lock();
        let full = unread.queue.bytes >= HIGH_WATER && unread.missed == 0;
        match full {
            true => Offer::NoRoom(event),
            false => self.push(unread, event, bytes),
        }
    }

    /// Queues an event regardless of capacity; it must be small.
    pub(super) fn offer_now(&self, event: SessionEvent) -> Offer {
        self.push(self.lock(), event, OVERHEAD)
    }

    fn push(&self, mut unread: MutexGuard<'_, Unread>, event: SessionEvent, bytes: usize) -> Offer {
        match unread.attention {
            Attention::Gone => return Offer::Refused(event),
            _ if unread.closed => return Offer::Refused(event),
            Attention::Discards => return Offer::Taken,
            Attention::Reads => {}
        }
        if unread.missed > 0 {
            // The number of missed events directly precedes the events after the gap.
            unread.missed += 1;
            return Offer::Taken;
        }
        unread.queue.push(event, bytes);
        unread.waits = false;
        let waker = unread.waker.take();
        drop(unread);
        if let Some(waker) = waker {
            waker.wake();
        }
        Offer::Taken
    }

    /// Queues an event, waiting for capacity. After each `reader_timeout` the wait continues if
    /// `may_wait` returns `true`; otherwise this event and later ones are dropped.
    pub(super) async fn deliver(
        &self,
        mut event: SessionEvent,
        bytes: usize,
        reader_timeout: Duration,
        may_wait: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SessionEvent> {
        let _watcher = Watcher::of(self, true);
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // Registered before the check, so that no wake-up is missed.
            room.as_mut().enable();
            event = match self.offer(event, bytes) {
                Offer::Taken => return Ok(()),
                Offer::Refused(event) => return Err(event),
                Offer::NoRoom(event) => event,
            };
            if timeout(reader_timeout, room).await.is_err() && !may_wait() && self.miss() {
                return Ok(());
            }
        }
    }

    /// Drops an event, if there is still no capacity. Otherwise the reader may be waiting, and nothing
    /// would wake it: it must get the event.
    fn miss(&self) -> bool {
        let mut unread = self.lock();
        let is_full = unread.queue.bytes >= HIGH_WATER;
        unread.missed += u64::from(is_full);
        is_full
    }

    /// Returns the next event; `None` after the last.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        // Locked once, so that no event is missed between the check and the registration of the
        // waker.
        let mut unread = self.lock();
        unread.processed = unread.taken;
        let event = unread.take();
        let ended = event.is_none() && unread.closed;
        unread.waits = event.is_none();
        if event.is_none() && !ended {
            unread.waker = Some(cx.waker().clone());
        }
        let is_watched = unread.watchers > 0;
        drop(unread);
        if is_watched {
            self.room.notify_waiters();
        }
        match event {
            None if !ended => Poll::Pending,
            event => Poll::Ready(event),
        }
    }

    /// Returns the next queued event.
    pub(super) fn ready(&self) -> Option<SessionEvent> {
        let event = self.lock().take()?;
        self.room.notify_waiters();
        Some(event)
    }

    /// Waits until the reader has processed the events so far: it has received them and asked for the
    /// next one. `false` if it takes none for `limit`. Completes immediately if the reader was
    /// dropped or discards events.
    pub(super) async fn caught_up(&self, limit: Duration) -> bool {
        let _watcher = Watcher::of(self, false);
        let mut target = None;
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let unread = self.lock();
                let queued = unread.queue.entries.len() as u64;
                let target = *target.get_or_insert(unread.taken + queued + unread.coming);
                let is_processed = unread.processed >= target || unread.waits;
                if is_processed || unread.attention != Attention::Reads {
                    return true;
                }
            }
            if timeout(limit, changed).await.is_err() {
                return false;
            }
        }
    }

    /// Discards all events from now on.
    pub(super) fn discard(&self) {
        self.set_attention(Attention::Discards);
    }

    /// Records that the reader was dropped.
    pub(super) fn leave(&self) {
        self.set_attention(Attention::Gone);
    }

    fn set_attention(&self, attention: Attention) {
        let unread = {
            let mut unread = self.lock();
            unread.attention = attention;
            std::mem::take(&mut unread.queue)
        };
        drop(unread);
        self.room.notify_waiters();
    }

    /// Ends the queue: no events follow.
    pub(super) fn close(&self) {
        let waker = {
            let mut unread = self.lock();
            unread.closed = true;
            unread.waker.take()
        };
        self.room.notify_waiters();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that waits for a change of a reader, with an event or without.
struct Watcher<'a> {
    reader: &'a Reader,
    has_event: bool,
}

impl<'a> Watcher<'a> {
    fn of(reader: &'a Reader, has_event: bool) -> Self {
        let mut unread = reader.lock();
        unread.watchers += 1;
        unread.coming += u64::from(has_event);
        Self { reader, has_event }
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        let mut unread = self.reader.lock();
        unread.watchers -= 1;
        unread.coming -= u64::from(self.has_event);
    }
}

impl Unread {
    fn take(&mut self) -> Option<SessionEvent> {
        if let Some(event) = self.queue.pop() {
            self.taken += 1;
            return Some(event);
        }
        let missed = std::mem::take(&mut self.missed);
        (missed > 0).then(|| SessionEvent::missed(missed))
    }
}

/// The queued entries and their size.
#[derive(Debug)]
pub(super) struct Queue<T> {
    entries: VecDeque<(T, usize)>,
    pub(super) bytes: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<T> Queue<T> {
    pub(super) fn push(&mut self, entry: T, bytes: usize) {
        self.bytes += bytes;
        self.entries.push_back((entry, bytes));
    }

    fn push_front(&mut self, entry: T, bytes: usize) {
        self.bytes += bytes;
        self.entries.push_front((entry, bytes));
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let (entry, bytes) = self.entries.pop_front()?;
        self.bytes -= bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
