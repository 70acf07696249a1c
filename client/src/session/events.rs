//! A stream of all events of a session.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::event::SessionEvent;
use super::inbox::Inbox;
use super::reader::Reader;

/// A stream of all events of a session, in order, until the session is closed.
///
/// Includes events in turns and between them, the history of a loaded session, and events caused by
/// other clients of the session. Created by [`Session::events`](crate::Session::events).
///
/// Unread events exert backpressure on the agent, see
/// [`ClientBuilder::reader_timeout`](crate::ClientBuilder::reader_timeout).
#[derive(Debug)]
pub struct Events {
    inbox: Arc<Inbox>,
    reader: Arc<Reader>,
}

impl Events {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Self {
        let reader = inbox.add_reader();
        Self { inbox, reader }
    }

    /// Returns the next event; `None` when the session is closed or the agent has disconnected.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| self.reader.poll(cx)).await
    }

    /// Returns the next event if one is queued, without waiting.
    pub fn next_ready(&mut self) -> Option<SessionEvent> {
        self.reader.ready()
    }
}

impl Stream for Events {
    type Item = SessionEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        self.reader.poll(cx)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.inbox.remove_reader(&self.reader);
    }
}
