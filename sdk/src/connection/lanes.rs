//! Order among the notifications of a session, and between them and responses.
//!
//! A notification whose handler finishes at once leaves no trace here. One that
//! has to wait opens a *lane* for its session; what arrives for the session after
//! it queues up behind. A response is held back until the notifications that the
//! peer wrote before it have been handled: those of the session that the request
//! named, or all of them where it named none.
//!
//! A handler that itself calls the peer would wait for a response that waits for
//! the handler. So a lane holds nothing back while its handler has a call open.
//!
//! This table does no I/O and runs nothing; it hands back what is to be done.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::pending::Reply;
use crate::runtime::BoxFuture;

/// Names the handler of one notification, or of several of one session, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaneId(pub(crate) u64);

thread_local! {
    /// The lane whose handler is being polled on this thread.
    static CURRENT: Cell<Option<LaneId>> = const { Cell::new(None) };
}

impl LaneId {
    /// The lane whose handler makes the call that is under way.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.get()
    }

    /// Runs `poll` so that calls made in it are known to come from this lane.
    pub(crate) fn enter<R>(self, poll: impl FnOnce() -> R) -> R {
        struct Leave(Option<LaneId>);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _leave = Leave(CURRENT.replace(Some(self)));
        poll()
    }
}

/// A reply together with who waits for it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) caller: oneshot::Sender<Reply>,
    pub(crate) reply: Reply,
}

impl Delivery {
    pub(crate) fn send(self) {
        // A caller that has gone needs no answer.
        let _ = self.caller.send(self.reply);
    }
}

#[derive(Default)]
pub(crate) struct Lanes {
    /// How many notifications have arrived.
    arrived: u64,
    opened: u64,
    lanes: HashMap<Arc<str>, Lane>,
    held: Vec<Held>,
    /// Open calls by the lane whose handler made them.
    calls: HashMap<LaneId, usize>,
    queued_bytes: usize,
}

struct Lane {
    id: LaneId,
    /// Number of the notification being handled.
    current: u64,
    queue: VecDeque<Queued>,
}

struct Queued {
    number: u64,
    task: BoxFuture,
    bytes: usize,
}

struct Held {
    session: Option<Arc<str>>,
    /// How many notifications had arrived before the response.
    arrived: u64,
    delivery: Delivery,
}

/// The session of notifications that name none.
const NO_SESSION: &str = "";

impl Lanes {
    /// Whether every notification so far has been handled.
    pub(crate) fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Counts a notification in and names the lane it would open.
    pub(crate) fn arrive(&mut self) -> LaneId {
        self.arrived += 1;
        self.opened += 1;
        LaneId(self.opened)
    }

    /// Queues the notification that arrived last, if its session has a lane; hands it back if not.
    pub(crate) fn queue(
        &mut self,
        session: Option<&str>,
        task: BoxFuture,
        bytes: usize,
    ) -> Option<BoxFuture> {
        let Some(lane) = self.lanes.get_mut(session.unwrap_or(NO_SESSION)) else {
            return Some(task);
        };
        // The handler, ready to run, is often several times as large as its message.
        let bytes = bytes + size_of_val(&*task) + size_of::<Queued>();
        lane.queue.push_back(Queued {
            number: self.arrived,
            task,
            bytes,
        });
        self.queued_bytes += bytes;
        None
    }

    /// Opens a lane for the notification that arrived last: its handler has to wait.
    pub(crate) fn open(&mut self, session: Option<&str>, id: LaneId) -> Arc<str> {
        let key: Arc<str> = session.unwrap_or(NO_SESSION).into();
        let lane = Lane {
            id,
            current: self.arrived,
            queue: VecDeque::new(),
        };
        self.lanes.insert(key.clone(), lane);
        key
    }

    /// The lane's handler has finished: what it does next, and the responses that waited for it.
    pub(crate) fn finished(&mut self, key: &str) -> (Option<BoxFuture>, Vec<Delivery>) {
        let mut next = None;
        if let Some(lane) = self.lanes.get_mut(key) {
            if let Some(queued) = lane.queue.pop_front() {
                lane.current = queued.number;
                self.queued_bytes -= queued.bytes;
                next = Some(queued.task);
            } else {
                self.lanes.remove(key);
            }
        }
        (next, self.release())
    }

    /// Holds a response back, or hands it out if nothing stands before it.
    pub(crate) fn hold(
        &mut self,
        session: Option<Arc<str>>,
        delivery: Delivery,
    ) -> Option<Delivery> {
        let held = Held {
            session,
            arrived: self.arrived,
            delivery,
        };
        if self.is_free(&held) {
            return Some(held.delivery);
        }
        self.held.push(held);
        None
    }

    /// The lane's handler has called the peer, so the lane holds nothing back for now.
    pub(crate) fn call_opened(&mut self, lane: LaneId) -> Vec<Delivery> {
        *self.calls.entry(lane).or_default() += 1;
        self.release()
    }

    pub(crate) fn call_ended(&mut self, lane: LaneId) {
        if let Some(open) = self.calls.get_mut(&lane) {
            *open -= 1;
            if *open == 0 {
                self.calls.remove(&lane);
            }
        }
    }

    /// Whether a notification handler is waiting for the peer.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Size in bytes of the notifications that have not been started, and of their handlers.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Everything held back, at the end of the connection.
    pub(crate) fn release_all(&mut self) -> Vec<Delivery> {
        self.held.drain(..).map(|held| held.delivery).collect()
    }

    fn release(&mut self) -> Vec<Delivery> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let (free, still_held): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|held| self.is_free(held));
        self.held = still_held;
        free.into_iter().map(|held| held.delivery).collect()
    }

    fn is_free(&self, held: &Held) -> bool {
        let blocks =
            |lane: &Lane| lane.current <= held.arrived && !self.calls.contains_key(&lane.id);
        match &held.session {
            Some(session) => [session, NO_SESSION]
                .iter()
                .all(|key| !self.lanes.get(*key).is_some_and(blocks)),
            None => !self.lanes.values().any(blocks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> BoxFuture {
        Box::pin(async {})
    }

    fn delivery() -> (Delivery, oneshot::Receiver<Reply>) {
        let (caller, reply) = oneshot::channel();
        (
            Delivery {
                caller,
                reply: Reply::Overloaded,
            },
            reply,
        )
    }

    fn open(lanes: &mut Lanes, session: &str) -> LaneId {
        let id = lanes.arrive();
        assert!(lanes.queue(Some(session), task(), 1).is_some());
        lanes.open(Some(session), id);
        id
    }

    #[test]
    fn a_response_waits_for_what_came_before_it_and_for_nothing_else() {
        let mut lanes = Lanes::default();
        open(&mut lanes, "a");
        lanes.arrive();
        assert!(lanes.queue(Some("a"), task(), 10).is_none());
        let handler = size_of_val(&*task()) + size_of::<Queued>();
        assert_eq!(lanes.queued_bytes(), 10 + handler);
        assert!(lanes.hold(Some("a".into()), delivery().0).is_none());
        assert!(
            lanes.hold(Some("b".into()), delivery().0).is_some(),
            "another session's"
        );
        lanes.arrive();
        assert!(
            lanes.queue(Some("a"), task(), 10).is_none(),
            "after the response"
        );

        let (next, free) = lanes.finished("a");
        assert!(next.is_some() && free.is_empty());
        let (next, free) = lanes.finished("a");
        assert!(next.is_some());
        assert_eq!(
            free.len(),
            1,
            "the third notification came after the response"
        );
        let (next, _) = lanes.finished("a");
        assert!(next.is_none() && lanes.is_idle() && lanes.queued_bytes() == 0);
    }

    #[test]
    fn a_response_without_a_session_waits_for_all() {
        let mut lanes = Lanes::default();
        open(&mut lanes, "a");
        open(&mut lanes, "b");
        assert!(lanes.hold(None, delivery().0).is_none());
        assert!(lanes.finished("a").1.is_empty());
        assert_eq!(lanes.finished("b").1.len(), 1);
    }

    #[test]
    fn a_response_waits_for_notifications_without_a_session_too() {
        let mut lanes = Lanes::default();
        lanes.arrive();
        let id = lanes.arrive();
        lanes.open(None, id);
        assert!(lanes.hold(Some("a".into()), delivery().0).is_none());
        assert_eq!(lanes.finished(NO_SESSION).1.len(), 1);
    }

    #[test]
    fn a_handler_that_calls_the_peer_holds_nothing_back() {
        let mut lanes = Lanes::default();
        let lane = open(&mut lanes, "a");
        assert!(lanes.hold(Some("a".into()), delivery().0).is_none());
        assert_eq!(lanes.call_opened(lane).len(), 1);
        assert!(lanes.hold(Some("a".into()), delivery().0).is_some());
        lanes.call_opened(lane);
        lanes.call_ended(lane);
        assert!(lanes.has_calls(), "one of two");
        lanes.call_ended(lane);
        assert!(!lanes.has_calls());
        assert!(lanes.hold(Some("a".into()), delivery().0).is_none());
        assert_eq!(lanes.release_all().len(), 1);
    }

    #[test]
    fn the_current_lane_is_restored_even_after_a_panic() {
        let outer = LaneId(1);
        outer.enter(|| {
            let panicked =
                std::panic::catch_unwind(|| LaneId(2).enter(|| panic!("a handler's fault")));
            assert!(panicked.is_err());
            assert_eq!(LaneId::current(), Some(outer));
        });
        assert_eq!(LaneId::current(), None);
    }
}
