//! Delivers events to the readers of a session, and keeps those without a reader.

use std::sync::Arc;
use std::time::Duration;

use super::{Inbox, State};
use crate::session::Sessions;
use crate::session::event::{Event, SessionEvent};
use crate::session::reader::{OVERHEAD, Offer, Queue, Reader};
use crate::session::turn_state::TurnState;

/// Limit in bytes of the events kept for the first `Events`.
pub(super) const KEPT_BYTES: usize = 8 << 20;

/// The same limit for a session whose id is not known yet.
pub(super) const UNCLAIMED_BYTES: usize = 256 << 10;

/// Events without a reader.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) events: Queue<SessionEvent>,
    /// The number of older events that were dropped.
    pub(super) dropped: u64,
}

/// An event that some readers have no capacity for.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The readers, each with its copy of the event.
    readers: Vec<(Arc<Reader>, SessionEvent)>,
    bytes: usize,
}

/// The maximum time that delivering an event waits for a reader.
pub(crate) struct ReaderTimeout<'a> {
    pub(crate) limit: Duration,
    /// The limit applies while other sessions or requests need the connection; `None` if a request
    /// of the agent waits, so that it always applies.
    pub(crate) sessions: Option<&'a Sessions>,
}

impl ReaderTimeout<'_> {
    fn may_wait(&self) -> bool {
        self.sessions.is_some_and(|sessions| !sessions.is_shared())
    }
}

impl Inbox {
    /// Waits for capacity and delivers the returned event.
    pub(crate) async fn put_in(&self, waiting: Waiting, reader_timeout: &ReaderTimeout<'_>) {
        let Waiting { readers, bytes } = waiting;
        for (reader, event) in readers {
            let may_wait = || reader_timeout.may_wait();
            let limit = reader_timeout.limit;
            if let Err(event) = reader.deliver(event, bytes, limit, &may_wait).await {
                self.lock().keep(event, bytes);
            }
        }
    }
}

impl State {
    /// Delivers an event to its readers. Returns it for those without capacity.
    pub(super) fn deliver(
        &mut self,
        event: SessionEvent,
        bytes: usize,
        turn: Option<&TurnState>,
    ) -> Option<Waiting> {
        let mut waiting = Vec::new();
        let mut offer = |reader: &Arc<Reader>, event| match reader.offer(event, bytes) {
            Offer::Taken => None,
            Offer::NoRoom(event) => {
                waiting.push((reader.clone(), event));
                None
            }
            Offer::Refused(event) => Some(event),
        };
        let rest = match (turn, self.readers.split_last()) {
            (None, None) => Some(event),
            (Some(turn), None) => offer(&turn.reader, event),
            (turn, Some((last, others))) => {
                let readers = others.iter().chain(turn.map(|turn| &turn.reader));
                for reader in readers {
                    offer(reader, event.clone());
                }
                offer(last, event)
            }
        };
        if let Some(event) = rest {
            self.keep(event, bytes);
        }
        (!waiting.is_empty()).then_some(Waiting {
            readers: waiting,
            bytes,
        })
    }

    /// Delivers an event of this crate to the readers of all events immediately.
    pub(super) fn push_now(&mut self, event: Event, turn: Option<u64>) {
        let event = SessionEvent::live(event, turn);
        if self.readers.is_empty() {
            return self.keep(event, OVERHEAD);
        }
        for reader in &self.readers {
            reader.offer_now(event.clone());
        }
    }

    pub(super) fn keep(&mut self, event: SessionEvent, bytes: usize) {
        let Some(backlog) = &mut self.backlog else {
            return;
        };
        let most = match self.claimed {
            true => KEPT_BYTES,
            false => UNCLAIMED_BYTES,
        };
        backlog.events.push(event, bytes);
        while backlog.events.bytes > most && backlog.events.pop().is_some() {
            backlog.dropped += 1;
        }
    }
}
