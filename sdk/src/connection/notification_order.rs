//! Order among the notifications of a session, and between them and responses.
//!
//! A notification whose handler completes at once leaves no trace here. One that has to wait
//! opens a *queue* for its session; later notifications of the session wait in it. A response
//! is held until the notifications that the peer wrote before it have been handled: those of
//! the session that the request named, or all if it named none.
//!
//! A handler that calls the peer would wait for a response that waits for the handler. So a
//! queue holds nothing while its current handler has a call open. Calls belong to a handler by
//! the [`NotificationId`] in the handle that its context gave it, whichever task or thread makes
//! them. A call through any other handle is not recognised: its response is delivered after
//! the hold timeout at the latest ([`NotificationOrder::expire`]).
//!
//! This table does no I/O and runs nothing; it returns what is to be done.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::pending::Reply;
use crate::runtime::BoxFuture;

/// Number of a notification on its connection, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NotificationId(pub(crate) u64);

/// A reply and its caller.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) caller: oneshot::Sender<Reply>,
    pub(crate) reply: Reply,
}

impl Delivery {
    /// Wakes the caller: never called while a lock is held.
    pub(crate) fn send(self) {
        // The caller may have been dropped.
        let _ = self.caller.send(self.reply);
    }
}

#[derive(Default)]
pub(crate) struct NotificationOrder {
    /// How many notifications have arrived.
    arrived: u64,
    queues: HashMap<Arc<str>, Queue>,
    /// In the order in which the responses arrived.
    held: VecDeque<Held>,
    /// Open calls by the notification whose handler made them.
    calls: HashMap<NotificationId, usize>,
    queued_bytes: usize,
    held_bytes: usize,
}

struct Queue {
    /// The notification being handled.
    current: NotificationId,
    waiting: VecDeque<Queued>,
}

struct Queued {
    id: NotificationId,
    handler: BoxFuture,
    bytes: usize,
}

struct Held {
    session: Option<Arc<str>>,
    /// The last notification that had arrived before the response.
    after: NotificationId,
    since: Instant,
    bytes: usize,
    delivery: Delivery,
}

/// The queue key of notifications that name no session.
const NO_SESSION: &str = "";

impl NotificationOrder {
    /// Returns whether every notification so far has been handled.
    pub(crate) fn is_idle(&self) -> bool {
        self.queues.is_empty()
    }

    /// Assigns the next number to a notification. Also returns whether every notification before
    /// it has been handled.
    pub(crate) fn arrive(&mut self) -> (NotificationId, bool) {
        self.arrived += 1;
        (NotificationId(self.arrived), self.is_idle())
    }

    /// Queues a notification if its session has a queue; returns the handler if not.
    pub(crate) fn enqueue(
        &mut self,
        session: Option<&str>,
        id: NotificationId,
        handler: BoxFuture,
        bytes: usize,
    ) -> Option<BoxFuture> {
        let Some(queue) = self.queues.get_mut(session.unwrap_or(NO_SESSION)) else {
            return Some(handler);
        };
        // The handler is often several times as large as its message.
        let bytes = bytes + size_of_val(&*handler) + size_of::<Queued>();
        queue.waiting.push_back(Queued { id, handler, bytes });
        self.queued_bytes += bytes;
        None
    }

    /// Opens a queue behind a notification whose handler has to wait.
    pub(crate) fn open(&mut self, session: Option<&str>, id: NotificationId) -> Arc<str> {
        let key: Arc<str> = session.unwrap_or(NO_SESSION).into();
        let queue = Queue {
            current: id,
            waiting: VecDeque::new(),
        };
        self.queues.insert(key.clone(), queue);
        key
    }

    /// Records that the queue's current handler has completed. Returns the next handler, and the
    /// responses that waited for this one.
    pub(crate) fn completed(&mut self, key: &str) -> (Option<BoxFuture>, Vec<Delivery>) {
        let mut next = None;
        if let Some(queue) = self.queues.get_mut(key) {
            if let Some(queued) = queue.waiting.pop_front() {
                queue.current = queued.id;
                self.queued_bytes -= queued.bytes;
                next = Some(queued.handler);
            } else {
                self.queues.remove(key);
            }
        }
        (next, self.release())
    }

    /// Holds a response of `bytes` bytes, or returns it if nothing stands before it.
    pub(crate) fn hold(
        &mut self,
        session: Option<Arc<str>>,
        bytes: usize,
        delivery: Delivery,
    ) -> Option<Delivery> {
        let held = Held {
            session,
            after: NotificationId(self.arrived),
            since: Instant::now(),
            bytes,
            delivery,
        };
        if self.is_free(&held) {
            return Some(held.delivery);
        }
        self.held_bytes += bytes;
        self.held.push_back(held);
        None
    }

    /// Records a call by a notification handler. Returns the responses that its queue held.
    pub(crate) fn call_opened(&mut self, origin: NotificationId) -> Vec<Delivery> {
        *self.calls.entry(origin).or_default() += 1;
        self.release()
    }

    pub(crate) fn call_ended(&mut self, origin: NotificationId) {
        if let Some(open) = self.calls.get_mut(&origin) {
            *open -= 1;
            if *open == 0 {
                self.calls.remove(&origin);
            }
        }
    }

    /// Returns whether a notification handler waits for the peer.
    pub(crate) fn has_calls(&self) -> bool {
        let waits = |queue: &Queue| self.calls.contains_key(&queue.current);
        !self.calls.is_empty() && self.queues.values().any(waits)
    }

    /// Returns the bytes of notifications that wait, their handlers, and held responses.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.queued_bytes + self.held_bytes
    }

    /// Returns when the oldest held response arrived.
    pub(crate) fn held_since(&self) -> Option<Instant> {
        self.held.front().map(|held| held.since)
    }

    /// Returns the responses that have been held since `limit` or earlier.
    pub(crate) fn expire(&mut self, limit: Instant) -> Vec<Delivery> {
        let expired = self.held.iter().take_while(|held| held.since <= limit);
        let expired = expired.count();
        let expired: Vec<Held> = self.held.drain(..expired).collect();
        self.delivered(expired)
    }

    /// Empties the table at the end of the connection. The handlers of queued notifications are
    /// returned to be dropped without a lock: they own handles to the connection that owns this
    /// table, and would keep it alive for ever.
    pub(crate) fn clear(&mut self) -> (Vec<BoxFuture>, Vec<Delivery>) {
        let queues = std::mem::take(&mut self.queues);
        let waiting = queues.into_values().flat_map(|queue| queue.waiting);
        let handlers = waiting.map(|queued| queued.handler).collect();
        self.queued_bytes = 0;
        let held: Vec<Held> = self.held.drain(..).collect();
        (handlers, self.delivered(held))
    }

    fn release(&mut self) -> Vec<Delivery> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let (mut free, mut still_held) = (Vec::new(), VecDeque::new());
        for held in held {
            if self.is_free(&held) {
                free.push(held);
            } else {
                still_held.push_back(held);
            }
        }
        self.held = still_held;
        self.delivered(free)
    }

    fn delivered(&mut self, held: Vec<Held>) -> Vec<Delivery> {
        self.held_bytes -= held.iter().map(|held| held.bytes).sum::<usize>();
        held.into_iter().map(|held| held.delivery).collect()
    }

    fn is_free(&self, held: &Held) -> bool {
        let blocks =
            |queue: &Queue| queue.current <= held.after && !self.calls.contains_key(&queue.current);
        match &held.session {
            Some(session) => [session, NO_SESSION]
                .iter()
                .all(|key| !self.queues.get(*key).is_some_and(blocks)),
            None => !self.queues.values().any(blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::service::Outcome;

    fn handler() -> BoxFuture {
        Box::pin(async { Outcome::Success })
    }

    fn delivery() -> (Delivery, oneshot::Receiver<Reply>) {
        let (caller, reply) = oneshot::channel();
        let reply_sent = Reply::Overloaded;
        (
            Delivery {
                caller,
                reply: reply_sent,
            },
            reply,
        )
    }

    fn open(order: &mut NotificationOrder, session: &str) -> NotificationId {
        let (id, _) = order.arrive();
        assert!(order.enqueue(Some(session), id, handler(), 1).is_some());
        order.open(Some(session), id);
        id
    }

    fn enqueue(order: &mut NotificationOrder, session: &str) -> NotificationId {
        let (id, idle) = order.arrive();
        assert!(!idle);
        assert!(order.enqueue(Some(session), id, handler(), 10).is_none());
        id
    }

    fn hold(order: &mut NotificationOrder, session: Option<&str>) -> Option<Delivery> {
        order.hold(session.map(Arc::from), 100, delivery().0)
    }

    #[test]
    fn a_response_waits_for_what_came_before_it_and_for_nothing_else() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        enqueue(&mut order, "a");
        let queued = 10 + size_of_val(&*handler()) + size_of::<Queued>();
        assert_eq!(order.buffered_bytes(), queued);
        assert!(hold(&mut order, Some("a")).is_none());
        assert_eq!(order.buffered_bytes(), queued + 100, "held responses count");
        assert!(hold(&mut order, Some("b")).is_some(), "another session's");
        enqueue(&mut order, "a");

        let (next, free) = order.completed("a");
        assert!(next.is_some() && free.is_empty());
        let (next, free) = order.completed("a");
        assert!(next.is_some());
        assert_eq!(free.len(), 1, "the third came after the response");
        let (next, _) = order.completed("a");
        assert!(next.is_none() && order.is_idle() && order.buffered_bytes() == 0);
    }

    #[test]
    fn a_response_without_a_session_waits_for_all() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        open(&mut order, "b");
        assert!(hold(&mut order, None).is_none());
        assert!(order.completed("a").1.is_empty());
        assert_eq!(order.completed("b").1.len(), 1);
    }

    #[test]
    fn a_response_waits_for_notifications_without_a_session_too() {
        let mut order = NotificationOrder::default();
        order.arrive();
        let (id, idle) = order.arrive();
        assert!(idle);
        order.open(None, id);
        assert!(hold(&mut order, Some("a")).is_none());
        assert_eq!(order.completed(NO_SESSION).1.len(), 1);
    }

    #[test]
    fn a_handler_that_calls_the_peer_holds_nothing() {
        let mut order = NotificationOrder::default();
        let first = open(&mut order, "a");
        let second = enqueue(&mut order, "a");
        assert!(hold(&mut order, Some("a")).is_none());
        assert!(
            order.call_opened(second).is_empty(),
            "its turn has not come"
        );
        assert!(!order.has_calls());
        assert_eq!(order.call_opened(first).len(), 1);
        assert!(hold(&mut order, Some("a")).is_some());
        order.call_opened(first);
        order.call_ended(first);
        assert!(order.has_calls(), "one of two");
        order.call_ended(first);
        assert!(!order.has_calls());
        assert!(hold(&mut order, Some("a")).is_none());
        // The second handler has a call open when its turn comes.
        assert_eq!(order.completed("a").1.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_is_held_no_longer_than_the_limit() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        assert!(hold(&mut order, Some("a")).is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(hold(&mut order, Some("a")).is_none());
        let first = order.held_since().unwrap();
        assert_eq!(order.expire(first).len(), 1, "the older one");
        assert!(order.held_since().unwrap() > first);
        assert_eq!(order.buffered_bytes(), 100);
    }

    #[test]
    fn the_end_returns_everything() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        enqueue(&mut order, "a");
        assert!(hold(&mut order, Some("a")).is_none());
        let (handlers, held) = order.clear();
        assert_eq!((handlers.len(), held.len()), (1, 1));
        assert!(order.is_idle() && order.buffered_bytes() == 0);
    }
}
