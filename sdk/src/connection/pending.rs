//! Outgoing requests without a response yet.
//!
//! A plain table without I/O. Ids count up from 0 and are never reused, so a response to an
//! unknown id is late, a duplicate or invented, and changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::notification_order::NotificationId;
use super::reply::{Delivery, Hooks, Reply};
use crate::error::{CloseReason, Error, Result};

/// A request without a response.
pub(crate) struct Waiting {
    pub(crate) caller: oneshot::Sender<Reply>,
    /// The session that the request named: its notifications are handled before the caller
    /// receives the response.
    pub(crate) session: Option<Arc<str>>,
    /// The notification whose handler made the call, if one did.
    pub(crate) origin: Option<NotificationId>,
    pub(crate) hooks: Hooks,
}

impl Waiting {
    /// Returns what is to be delivered. It owns the hooks, which are values of the application:
    /// they are dropped with it, without a lock.
    pub(crate) fn delivery(self, reply: Reply) -> Delivery {
        Delivery {
            caller: self.caller,
            reply,
            hooks: self.hooks,
        }
    }
}

#[derive(Default)]
pub(crate) struct Pending {
    next_id: u64,
    waiting: HashMap<u64, Waiting>,
    closed: Option<CloseReason>,
}

impl Pending {
    /// Opens a request. Returns its id and the receiver of the reply.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when no response can arrive any more. `hooks` are left to the caller then.
    pub(crate) fn open(
        &mut self,
        session: Option<Arc<str>>,
        origin: Option<NotificationId>,
        hooks: &mut Hooks,
    ) -> Result<(u64, oneshot::Receiver<Reply>)> {
        if let Some(closed) = &self.closed {
            return Err(Error::Closed(closed.clone()));
        }
        let id = self.next_id;
        self.next_id += 1;
        let (caller, reply) = oneshot::channel();
        self.waiting.insert(
            id,
            Waiting {
                caller,
                session,
                origin,
                hooks: std::mem::take(hooks),
            },
        );
        Ok((id, reply))
    }

    /// Removes a request that was answered or whose caller was dropped. To be dropped without a
    /// lock.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Waiting> {
        self.waiting.remove(&id)
    }

    /// Whether this id was ever used.
    pub(crate) fn was_sent(&self, id: u64) -> bool {
        id < self.next_id
    }

    /// Refuses further requests. Returns the open ones, to be delivered without a lock.
    pub(crate) fn close(&mut self, reason: &CloseReason) -> Vec<Delivery> {
        self.closed.get_or_insert_with(|| reason.clone());
        let waiting = self.waiting.drain();
        waiting
            .map(|(_, waiting)| waiting.delivery(Reply::Closed(reason.clone())))
            .collect()
    }

    /// Returns why no response can arrive any more, if so.
    pub(crate) fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Aborts the calls of notification handlers. Returns their ids and replies.
    pub(crate) fn abort_handlers(&mut self) -> Vec<(u64, Delivery)> {
        let aborted = self
            .waiting
            .extract_if(|_, waiting| waiting.origin.is_some());
        aborted
            .map(|(id, waiting)| (id, waiting.delivery(Reply::Overloaded)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(
        pending: &mut Pending,
        origin: Option<NotificationId>,
    ) -> Result<(u64, oneshot::Receiver<Reply>)> {
        pending.open(None, origin, &mut Hooks::default())
    }

    #[test]
    fn ids_are_never_used_twice_and_an_answer_counts_once() {
        let mut pending = Pending::default();
        let (first, _first) = open(&mut pending, None).unwrap();
        assert!(pending.remove(first).is_some());
        assert!(pending.remove(first).is_none());
        let (second, _second) = open(&mut pending, None).unwrap();
        assert_ne!(first, second);
        assert!(pending.was_sent(second) && !pending.was_sent(second + 1));
    }

    #[test]
    fn closing_answers_everybody_now_and_later() {
        let mut pending = Pending::default();
        let (_, mut reply) = open(&mut pending, None).unwrap();
        let replies = pending.close(&CloseReason::ClosedLocally);
        replies.into_iter().for_each(Delivery::send);
        assert!(matches!(
            reply.try_recv(),
            Ok(Reply::Closed(CloseReason::ClosedLocally))
        ));
        assert!(matches!(open(&mut pending, None), Err(Error::Closed(_))));
    }

    #[test]
    fn only_calls_of_notification_handlers_are_given_up() {
        let mut pending = Pending::default();
        let (_, mut ordinary) = open(&mut pending, None).unwrap();
        let (nested, mut reply) = open(&mut pending, Some(NotificationId(1))).unwrap();
        let aborted = pending.abort_handlers();
        assert_eq!(aborted.len(), 1);
        for (id, delivery) in aborted {
            assert_eq!(id, nested);
            delivery.send();
        }
        assert!(matches!(reply.try_recv(), Ok(Reply::Overloaded)));
        assert!(ordinary.try_recv().is_err());
    }
}
