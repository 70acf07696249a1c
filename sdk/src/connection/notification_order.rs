//! Order among the notifications of a session, and between them, requests and responses.
//!
//! A notification whose handler completes at once leaves no trace here. One that has to wait
//! opens a *queue* for its session; later notifications of the session wait in it. A response
//! is held until the notifications that the peer wrote before it have been handled: those of
//! the session that the request named, or all if it named none. A request of a session is held
//! until those of its session have been handled ([`Start`]).
//!
//! A handler that calls the peer would wait for a response that waits for the handler, or for a
//! request that the peer sends before it responds. So a queue holds nothing while its current
//! handler has a call open. Calls belong to a handler by the [`NotificationId`] in the handle that
//! its context gave it, whichever task or thread makes them. A call through any other handle is not
//! recognised: what is held is released after the hold timeout at the latest
//! ([`NotificationOrder::expire`]).
//!
//! A queue stays open until the responses that its last notification held are delivered, and the
//! requests have started, so that a later notification is not handled before them.
//!
//! This table does no I/O and runs nothing; it returns what is to be done.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::reply::Delivery;
use super::start::{Start, StartPermit, Started};
use crate::runtime::BoxFuture;

/// Number of a notification on its connection, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NotificationId(pub(crate) u64);

/// What was held behind notifications.
pub(crate) enum Released {
    Response(Delivery),
    Request(StartPermit),
}

impl Released {
    /// Delivers the response, or lets the request start: never called while a lock is held.
    pub(crate) fn go(self) {
        match self {
            Self::Response(delivery) => delivery.send(),
            Self::Request(permit) => permit.grant(),
        }
    }

    pub(crate) fn is_request(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

/// What a queue does next.
pub(crate) enum Next {
    /// Polls the handler of a notification, once the request before it has started.
    Handle(BoxFuture, Option<Started>),
    /// No notification waits. It closes once the last request has started.
    Wait(Started),
    /// It is closed.
    Closed,
}

#[derive(Default)]
pub(crate) struct NotificationOrder {
    /// How many notifications have arrived.
    arrived: u64,
    queues: HashMap<Arc<str>, Queue>,
    /// Responses and requests, in the order of arrival.
    held: VecDeque<Held>,
    /// Open calls by the notification whose handler made them.
    calls: HashMap<NotificationId, usize>,
    queued_bytes: usize,
    held_bytes: usize,
}

struct Queue {
    /// The notification being handled, or the next one; [`NONE`] if there is neither.
    current: NotificationId,
    waiting: VecDeque<Queued>,
    /// The last request that did not start where it was read.
    last_request: Option<Started>,
}

impl Queue {
    /// Returns the last request, unless it has started.
    fn predecessor(&self) -> Option<Started> {
        self.last_request
            .clone()
            .filter(|request| !request.is_over())
    }
}

struct Queued {
    id: NotificationId,
    /// The request before it that had not started when it arrived.
    predecessor: Option<Started>,
    handler: BoxFuture,
    bytes: usize,
}

struct Held {
    session: Option<Arc<str>>,
    /// The last notification that had arrived before.
    after: NotificationId,
    since: Instant,
    bytes: usize,
    released: Released,
}

/// The queue key of notifications that name no session.
const NO_SESSION: &str = "";

/// Later than any notification.
const NONE: NotificationId = NotificationId(u64::MAX);

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
        queue.waiting.push_back(Queued {
            id,
            predecessor: queue.predecessor(),
            handler,
            bytes,
        });
        queue.current = queue.current.min(id);
        self.queued_bytes += bytes;
        None
    }

    /// Opens a queue behind a notification whose handler has to wait.
    pub(crate) fn open(&mut self, session: Option<&str>, id: NotificationId) -> Arc<str> {
        let key: Arc<str> = session.unwrap_or(NO_SESSION).into();
        let queue = Queue {
            current: id,
            waiting: VecDeque::new(),
            last_request: None,
        };
        self.queues.insert(key.clone(), queue);
        key
    }

    /// Records that the queue's current handler has completed. Returns what was held behind it.
    /// When that is released, [`next`](Self::next) is called.
    pub(crate) fn completed(&mut self, key: &str) -> Vec<Released> {
        if let Some(queue) = self.queues.get_mut(key) {
            queue.current = queue.waiting.front().map_or(NONE, |next| next.id);
        }
        self.release()
    }

    /// Returns what a queue does next.
    pub(crate) fn next(&mut self, key: &str) -> Next {
        let Some(queue) = self.queues.get_mut(key) else {
            return Next::Closed;
        };
        if let Some(queued) = queue.waiting.pop_front() {
            queue.current = queued.id;
            self.queued_bytes -= queued.bytes;
            return Next::Handle(queued.handler, queued.predecessor);
        }
        match queue.predecessor() {
            Some(request) => Next::Wait(request),
            None => {
                self.queues.remove(key);
                Next::Closed
            }
        }
    }

    /// Returns what a request of `bytes` bytes waits for, or `None` if it may be handled where it
    /// was read.
    pub(crate) fn queue_request(&mut self, session: &str, bytes: usize) -> Option<Start> {
        let (key, queue) = self.queues.get_key_value(session)?;
        let predecessor = queue.predecessor();
        let (start, permit, started) = Start::new(predecessor.clone());
        let held = Held {
            session: Some(key.clone()),
            after: NotificationId(self.arrived),
            since: Instant::now(),
            bytes,
            released: Released::Request(permit),
        };
        if !self.is_free(&held) {
            self.held_bytes += bytes;
            self.held.push_back(held);
        } else if predecessor.is_some() {
            held.released.go();
        } else {
            return None;
        }
        self.queues.get_mut(session)?.last_request = Some(started);
        Some(start)
    }

    /// Holds a response of `bytes` bytes, or returns it if nothing stands before it.
    pub(crate) fn hold(
        &mut self,
        session: Option<Arc<str>>,
        bytes: usize,
        delivery: Delivery,
    ) -> Option<Released> {
        let held = Held {
            session,
            after: NotificationId(self.arrived),
            since: Instant::now(),
            bytes,
            released: Released::Response(delivery),
        };
        if self.is_free(&held) {
            return Some(held.released);
        }
        self.held_bytes += bytes;
        self.held.push_back(held);
        None
    }

    /// Records a call by a notification handler. Returns what its queue held.
    pub(crate) fn call_opened(&mut self, origin: NotificationId) -> Vec<Released> {
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

    /// Returns the bytes of notifications that wait, their handlers, and what is held.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.queued_bytes + self.held_bytes
    }

    /// Returns when the first of what is held arrived.
    pub(crate) fn held_since(&self) -> Option<Instant> {
        self.held.front().map(|held| held.since)
    }

    /// Returns what has been held since `limit` or earlier.
    pub(crate) fn expire(&mut self, limit: Instant) -> Vec<Released> {
        let expired = self.held.iter().take_while(|held| held.since <= limit);
        let expired = expired.count();
        let expired: Vec<Held> = self.held.drain(..expired).collect();
        self.released(expired)
    }

    /// Empties the table at the end of the connection. The handlers of queued notifications are
    /// returned to be dropped without a lock: they own handles to the connection that owns this
    /// table, and would keep it alive for ever.
    pub(crate) fn clear(&mut self) -> (Vec<BoxFuture>, Vec<Released>) {
        let queues = std::mem::take(&mut self.queues);
        let waiting = queues.into_values().flat_map(|queue| queue.waiting);
        let handlers = waiting.map(|queued| queued.handler).collect();
        self.queued_bytes = 0;
        let held: Vec<Held> = self.held.drain(..).collect();
        (handlers, self.released(held))
    }

    fn release(&mut self) -> Vec<Released> {
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
        self.released(free)
    }

    fn released(&mut self, held: Vec<Held>) -> Vec<Released> {
        self.held_bytes -= held.iter().map(|held| held.bytes).sum::<usize>();
        held.into_iter().map(|held| held.released).collect()
    }

    fn is_free(&self, held: &Held) -> bool {
        let blocks =
            |queue: &Queue| queue.current <= held.after && !self.calls.contains_key(&queue.current);
        match &held.session {
            // Other notifications may take long, and have nothing to do with the request.
            Some(session) if held.released.is_request() => {
                !self.queues.get(session).is_some_and(blocks)
            }
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

    use tokio::sync::oneshot;

    use super::*;
    use crate::connection::reply::{Hooks, Reply};
    use crate::service::Outcome;

    fn handler() -> BoxFuture {
        Box::pin(async { Outcome::Success })
    }

    fn is_handled(next: Next) -> bool {
        matches!(next, Next::Handle(_, None))
    }

    fn delivery() -> (Delivery, oneshot::Receiver<Reply>) {
        let (caller, reply) = oneshot::channel();
        let reply_sent = Reply::Overloaded;
        let delivery = Delivery {
            caller,
            reply: reply_sent,
            hooks: Hooks::default(),
        };
        (delivery, reply)
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

    fn hold(order: &mut NotificationOrder, session: Option<&str>) -> Option<Released> {
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

        assert!(order.completed("a").is_empty());
        assert!(is_handled(order.next("a")));
        let free = order.completed("a");
        assert_eq!(free.len(), 1, "the third came after the response");
        assert!(is_handled(order.next("a")));
        order.completed("a");
        assert!(matches!(order.next("a"), Next::Closed));
        assert!(order.is_idle() && order.buffered_bytes() == 0);
    }

    #[test]
    fn nothing_is_handled_while_the_responses_before_it_are_being_delivered() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        assert!(hold(&mut order, Some("a")).is_none());
        assert_eq!(order.completed("a").len(), 1);
        // Its response is being delivered: what comes now has to wait for that.
        assert!(hold(&mut order, Some("a")).is_some(), "in order already");
        enqueue(&mut order, "a");
        assert!(hold(&mut order, Some("a")).is_none(), "it came later");
        enqueue(&mut order, "a");
        assert!(is_handled(order.next("a")));
        assert_eq!(order.completed("a").len(), 1);
        assert!(is_handled(order.next("a")));
        assert!(order.completed("a").is_empty());
        assert!(matches!(order.next("a"), Next::Closed) && order.is_idle());
    }

    #[test]
    fn a_response_without_a_session_waits_for_all() {
        let mut order = NotificationOrder::default();
        open(&mut order, "a");
        open(&mut order, "b");
        assert!(hold(&mut order, None).is_none());
        assert!(order.completed("a").is_empty());
        assert_eq!(order.completed("b").len(), 1);
    }

    #[test]
    fn a_response_waits_for_notifications_without_a_session_too() {
        let mut order = NotificationOrder::default();
        order.arrive();
        let (id, idle) = order.arrive();
        assert!(idle);
        order.open(None, id);
        assert!(hold(&mut order, Some("a")).is_none());
        assert_eq!(order.completed(NO_SESSION).len(), 1);
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
        assert_eq!(order.completed("a").len(), 1);
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
