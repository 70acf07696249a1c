//! The requests we have sent and nobody has answered yet.
//!
//! A plain table, without I/O: ids are counted up from 0 and never used twice,
//! so an answer to an unknown id is late, doubled or invented, and changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::lanes::LaneId;
use crate::error::{CloseReason, Error, Result};
use crate::jsonrpc::RpcError;

/// What a caller is told, once.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(Box<RawValue>),
    Error(Box<RpcError>),
    Closed(CloseReason),
    Overloaded,
}

/// Looks at a result when it is read, before anything that the peer wrote after it.
pub(crate) type Preview = Box<dyn FnOnce(&RawValue) + Send>;

/// A request without an answer.
pub(crate) struct Waiting {
    pub(crate) caller: oneshot::Sender<Reply>,
    /// The session that the request named: its notifications are handled before the caller
    /// hears of the answer.
    pub(crate) session: Option<Arc<str>>,
    /// The notification handler that waits for the answer, if one does.
    pub(crate) lane: Option<LaneId>,
    pub(crate) preview: Option<Preview>,
}

#[derive(Default)]
pub(crate) struct Pending {
    next_id: u64,
    waiting: HashMap<u64, Waiting>,
    closed: Option<CloseReason>,
}

impl Pending {
    /// Opens a request and yields its id and the place where the answer will arrive.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when no answer can come any more.
    pub(crate) fn open(
        &mut self,
        session: Option<Arc<str>>,
        lane: Option<LaneId>,
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
                lane,
                preview: None,
            },
        );
        Ok((id, reply))
    }

    /// Has the result of an open request looked at as soon as it is read.
    pub(crate) fn preview(&mut self, id: u64, preview: Preview) {
        if let Some(waiting) = self.waiting.get_mut(&id) {
            waiting.preview = Some(preview);
        }
    }

    /// Ends a request: it was answered, or its caller has gone.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Waiting> {
        self.waiting.remove(&id)
    }

    /// Whether this id was ever used.
    pub(crate) fn was_sent(&self, id: u64) -> bool {
        id < self.next_id
    }

    /// Tells every caller that the connection has ended, and all later ones too.
    pub(crate) fn close(&mut self, reason: &CloseReason) {
        self.closed.get_or_insert_with(|| reason.clone());
        for (_, waiting) in self.waiting.drain() {
            // A caller that has gone needs no answer.
            let _ = waiting.caller.send(Reply::Closed(reason.clone()));
        }
    }

    /// Gives up what notification handlers wait for; yields the ids.
    pub(crate) fn give_up_handlers(&mut self) -> Vec<u64> {
        let ids: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, w)| w.lane.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in &ids {
            if let Some(waiting) = self.waiting.remove(id) {
                let _ = waiting.caller.send(Reply::Overloaded);
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_never_used_twice_and_an_answer_counts_once() {
        let mut pending = Pending::default();
        let (first, _first) = pending.open(None, None).unwrap();
        assert!(pending.remove(first).is_some());
        assert!(pending.remove(first).is_none());
        let (second, _second) = pending.open(None, None).unwrap();
        assert_ne!(first, second);
        assert!(pending.was_sent(second) && !pending.was_sent(second + 1));
    }

    #[test]
    fn closing_answers_everybody_now_and_later() {
        let mut pending = Pending::default();
        let (_, mut reply) = pending.open(None, None).unwrap();
        pending.close(&CloseReason::ClosedLocally);
        assert!(matches!(
            reply.try_recv(),
            Ok(Reply::Closed(CloseReason::ClosedLocally))
        ));
        assert!(matches!(pending.open(None, None), Err(Error::Closed(_))));
    }

    #[test]
    fn only_calls_of_notification_handlers_are_given_up() {
        let mut pending = Pending::default();
        let (_, mut ordinary) = pending.open(None, None).unwrap();
        let (nested, mut reply) = pending.open(None, Some(LaneId(1))).unwrap();
        assert_eq!(pending.give_up_handlers(), [nested]);
        assert!(matches!(reply.try_recv(), Ok(Reply::Overloaded)));
        assert!(ordinary.try_recv().is_err());
    }
}
