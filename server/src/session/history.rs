//! Reading what happened in a session.

use super::{Events, Received, Session};
use crate::Result;

/// Reads the events of a session up to the last that there was at the start, a page at a time.
///
/// An agent rebuilds the context of its model from it after a restart:
///
/// ```
/// use acp_sdk::v1::{ContentBlock, SessionUpdate};
/// use acp_server::event::{Event, EventBody};
/// use acp_server::{Received, Result, Session};
///
/// async fn words(session: &Session) -> Result<usize> {
///     let (mut history, mut words) = (session.history(), 0);
///     while let Some(received) = history.next().await? {
///         let Received::Event(Event { body: EventBody::Update(update), .. }) = received else {
///             continue;
///         };
///         if let SessionUpdate::UserMessageChunk(chunk) = update
///             && let ContentBlock::Text(text) = chunk.content
///         {
///             words += text.text.split_whitespace().count();
///         }
///     }
///     Ok(words)
/// }
/// ```
#[derive(Debug)]
pub struct History {
    events: Events,
    last: u64,
    next: u64,
}

impl History {
    pub(super) fn new(session: Session, after: u64) -> Self {
        let last = session.last_appended();
        Self {
            events: Events::new(session, after),
            last,
            next: after + 1,
        }
    }

    /// Returns the next event; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store) when events cannot be read.
    pub async fn next(&mut self) -> Result<Option<Received>> {
        let received = loop {
            if self.next > self.last {
                return Ok(None);
            }
            if let Some(received) = self.events.next_now().await? {
                break received;
            }
            // It is not committed yet; if it could not be, it does not exist.
            if self.next > self.events.last() {
                return Ok(None);
            }
            self.events.changed().await;
        };
        self.next = 1 + match &received {
            Received::Event(event) => event.number,
            Received::Gap(last) => *last,
        };
        Ok(Some(received))
    }
}
