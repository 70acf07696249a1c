//! Notifications that are sent again on another connection, because they may be lost.

use std::collections::VecDeque;

use acp_sdk::facts::{self, Scope};
use bytes::Bytes;

use super::MAX_TRACKED;
use crate::reconnect::envelope::Envelope;

/// Notifications of sessions that the agent may not have received.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    /// At most one of a session and method.
    entries: VecDeque<Entry>,
    /// The number of recorded messages.
    sent: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    session: String,
    method: String,
    message: Bytes,
}

impl Unconfirmed {
    /// Numbers a request. Its response proves that the agent has received all messages before it.
    pub(super) fn number(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// Records a notification, if it belongs to a session and may be sent again.
    ///
    /// Those of the connection are about requests that fail with it.
    pub(super) fn record(&mut self, envelope: &Envelope<'_>, message: &Bytes) {
        let named = envelope.session().zip(envelope.method.as_deref());
        let is_repeated = |method| {
            let facts = facts::of_agent(method);
            envelope.is_repeatable() && facts.is_some_and(|facts| facts.scope == Scope::Session)
        };
        let Some((session, method)) = named.filter(|(_, method)| is_repeated(method)) else {
            return;
        };
        let (session, method) = (session.into_owned(), method.to_owned());
        self.entries
            .retain(|entry| (&entry.session, &entry.method) != (&session, &method));
        if self.entries.len() >= MAX_TRACKED {
            self.entries.pop_front();
        }
        let number = self.number();
        self.entries.push_back(Entry {
            number,
            session,
            method,
            message: message.clone(),
        });
    }

    /// Removes the messages before the request with this number, which the agent has answered.
    pub(super) fn answered(&mut self, number: u64) {
        self.entries.retain(|entry| entry.number > number);
    }

    /// Removes the messages of a session, because its turn has ended or another one begins.
    pub(super) fn forget(&mut self, session: &str) {
        self.entries.retain(|entry| entry.session != session);
    }

    /// Returns the messages of a session, to be sent again.
    pub(super) fn repeat(&mut self, session: &str) -> Vec<Bytes> {
        let mut messages = Vec::new();
        for entry in &mut self.entries {
            if entry.session == session {
                self.sent += 1;
                entry.number = self.sent;
                messages.push(entry.message.clone());
            }
        }
        messages
    }
}
