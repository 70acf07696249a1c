//! Messages of the client that wait until their session is continued.

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
        let bytes: usize = waiting.iter().map(Bytes::len).sum();
        self.bytes -= bytes;
        self.restart();
        waiting
    }

    fn restart(&mut self) {
        let is_waiting = !self.sessions.is_empty();
        self.deadline = is_waiting.then(|| Instant::now() + self.timeout);
    }

    /// Keeps a message that must wait; returns any other. Responses never wait, because the agent
    /// may need them to continue the session.
    pub(super) fn hold(&mut self, message: Bytes) -> Option<Bytes> {
        if self.sessions.is_empty() {
            return Some(message);
        }
        let envelope = Envelope::read(&message);
        let session = match envelope.kind() {
            Kind::Request | Kind::Notification => envelope.session(),
            Kind::Answer | Kind::Other => None,
        };
        let waiting = match (session, envelope.cancelled_request()) {
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
