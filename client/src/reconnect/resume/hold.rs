//! Messages of the client that wait until a connection is open or their session is continued.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::reconnect::envelope::{Envelope, Kind};

/// Limit in bytes of the waiting messages. At the limit, no more messages are taken from the client.
const MAX_BYTES: usize = 8 << 20;

/// The sessions that are being continued.
#[derive(Debug, Default)]
pub(super) struct Continuing {
    /// The messages that wait for another connection, in order; `None` while one is open.
    connection: Option<Vec<Bytes>>,
    /// Each with the messages that wait for it, in order.
    sessions: HashMap<String, Vec<Bytes>>,
    bytes: usize,
    timeout: Duration,
    /// When the sessions are lost that were not continued.
    deadline: Option<Instant>,
}

impl Continuing {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            ..Self::default()
        }
    }

    /// Returns whether another message can wait.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_BYTES
    }

    /// Returns whether a message waits.
    pub(super) fn is_holding(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Excludes a time in which nothing was received from the agent.
    pub(super) fn extend(&mut self, by: Duration) {
        self.deadline = self.deadline.map(|deadline| deadline + by);
    }

    /// Begins to continue a session. Messages that wait for it already still do.
    pub(super) fn begin(&mut self, session: &str) {
        self.sessions.entry(session.to_owned()).or_default();
        self.restart();
    }

    /// Ends the wait for a session and returns its messages.
    pub(super) fn end(&mut self, session: &str) -> Vec<Bytes> {
        let waiting = self.sessions.remove(session).unwrap_or_default();
        self.restart();
        self.release(waiting)
    }

    /// Begins to wait for another connection. Messages that wait for it already still do.
    pub(super) fn wait_for_connection(&mut self) {
        self.connection.get_or_insert_default();
        self.deadline = None;
    }

    /// Ends the wait for another connection and returns its messages.
    pub(super) fn connected(&mut self) -> Vec<Bytes> {
        let waiting = self.connection.take().unwrap_or_default();
        self.release(waiting)
    }

    fn release(&mut self, waiting: Vec<Bytes>) -> Vec<Bytes> {
        self.bytes -= waiting.iter().map(Bytes::len).sum::<usize>();
        waiting
    }

    fn restart(&mut self) {
        let is_waiting = !self.sessions.is_empty();
        self.deadline = is_waiting.then(|| Instant::now() + self.timeout);
    }

    /// Keeps a message that must wait; returns any other. Responses never wait, because the agent
    /// may need them to open the connection or continue the session.
    pub(super) fn hold(&mut self, message: Bytes) -> Option<Bytes> {
        if self.sessions.is_empty() && self.connection.is_none() {
            return Some(message);
        }
        let envelope = Envelope::read(&message);
        if !matches!(envelope.kind(), Kind::Request | Kind::Notification) {
            return Some(message);
        }
        let waiting = match (envelope.session(), envelope.cancelled_request()) {
            _ if self.connection.is_some() => self.connection.as_mut(),
            (Some(session), _) => self.sessions.get_mut(session.as_ref()),
            // It follows the request.
            (None, Some(request)) => self.sessions.values_mut().find(|waiting| {
                let mut messages = waiting.iter();
                messages.any(|message| Envelope::read(message).id() == Some(request))
            }),
            (None, None) => None,
        };
        let Some(waiting) = waiting else {
            return Some(message);
        };
        self.bytes += message.len();
        waiting.push(message);
        None
    }
}
