//! An open connection of raw messages, independent of the transport.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::RemoteError;
use crate::error::Error;
use crate::reconnect::queue::{self, Receiver, Sender, Weight};

/// Capacity in bytes of the queue in each direction.
const QUEUED_BYTES: usize = 1 << 20;

/// A message or a rejection received from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// A message of the agent: one JSON text, unchanged.
    Message(Bytes),
    /// A message of this client was rejected; the connection continues.
    Refused(Refused),
}

/// A message that the server rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The id of the request, as JSON; `None` if it was not a request.
    pub request: Option<String>,
    /// The reason.
    pub error: RemoteError,
    /// The JSON-RPC message in the response's body, if any.
    pub body: Option<Bytes>,
    /// No response was received, so the server may have executed the request.
    pub is_uncertain: bool,
}

impl Weight for Received {
    fn weight(&self) -> usize {
        match self {
            Self::Message(message) => message.len(),
            Self::Refused(refused) => refused.body.as_ref().map_or(0, Bytes::len),
        }
    }
}

/// Sends raw messages to a remote agent. Dropping it closes this side of the connection after the
/// queued messages are sent.
#[derive(Debug)]
pub struct RawSender {
    outgoing: Sender<Bytes>,
    end: Arc<End>,
}

/// Receives raw messages of a remote agent. Dropping it closes the connection.
#[derive(Debug)]
pub struct RawReceiver {
    incoming: Receiver<Received>,
    end: Arc<End>,
}

/// The end of a connection and its reason.
#[derive(Debug, Default)]
pub(super) struct End {
    url: String,
    /// The first error.
    reason: Mutex<Option<RemoteError>>,
    /// Why the server cannot be reached at present, while the connection may still exist there.
    trouble: watch::Sender<Option<Error>>,
    /// Cancelled when the exchange of messages ends.
    pub(super) now: CancellationToken,
    /// Cancelled when the tasks have ended.
    pub(super) done: CancellationToken,
}

impl End {
    /// Ends the connection with an error.
    pub(super) fn fail(&self, error: RemoteError) {
        self.lock().get_or_insert(error);
        self.now.cancel();
    }

    /// Records whether the server can be reached.
    pub(super) fn set_trouble(&self, trouble: Option<RemoteError>) {
        self.trouble.send_if_modified(|current| {
            let changed = current.is_some() != trouble.is_some();
            if changed {
                *current = trouble.map(Error::from);
            }
            changed
        });
    }

    pub(super) fn has_trouble(&self) -> bool {
        self.trouble.borrow().is_some()
    }

    pub(super) fn reason(&self) -> Option<RemoteError> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<RemoteError>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queues and the end state that the tasks of a connection hold.
pub(super) struct Endpoints {
    pub(super) outgoing: Receiver<Bytes>,
    pub(super) incoming: Sender<Received>,
    pub(super) end: Arc<End>,
}

/// Creates the ends of a connection: those of its user, and the one of its tasks.
pub(super) fn ends(url: String) -> (RawSender, RawReceiver, Endpoints) {
    let (outgoing, to_send) = queue::queue(QUEUED_BYTES);
    let (received, incoming) = queue::queue(QUEUED_BYTES);
    let end = Arc::new(End {
        url,
        ..End::default()
    });
    let endpoints = Endpoints {
        outgoing: to_send,
        incoming: received,
        end: end.clone(),
    };
    let sender = RawSender {
        outgoing,
        end: end.clone(),
    };
    (sender, RawReceiver { incoming, end }, endpoints)
}

impl RawSender {
    /// Sends a message after waiting for capacity, without waiting for the server to accept it.
    ///
    /// Sends nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// Fails with the reason for which the connection has ended.
    pub async fn send(&self, message: Bytes) -> Result<(), RemoteError> {
        if self.outgoing.send(message).await {
            return Ok(());
        }
        let closed = || RemoteError::Lost {
            url: self.end.url.clone(),
            reason: "it was closed".to_owned(),
        };
        Err(self.end.reason().unwrap_or_else(closed))
    }
}

impl RawReceiver {
    /// Receives the next message; `None` after the end of a connection that this side has closed.
    ///
    /// Loses nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// Fails with the reason for which the connection has ended.
    pub async fn receive(&mut self) -> Result<Option<Received>, RemoteError> {
        if let Some(received) = self.incoming.receive().await {
            return Ok(Some(received));
        }
        match self.end.reason() {
            Some(reason) => Err(reason),
            None => Ok(None),
        }
    }

    /// Returns why the server cannot be reached, whenever that changes.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<Error>> {
        self.end.trouble.subscribe()
    }

    /// Ends the connection without notifying the server.
    pub(super) fn abandon(&self) {
        self.end.fail(RemoteError::Lost {
            url: self.end.url.clone(),
            reason: "another one replaces it".to_owned(),
        });
    }

    /// Waits until all messages are sent and the server is notified of the end.
    ///
    /// Drop the [`RawSender`] first.
    pub async fn closed(&self) {
        self.end.done.cancelled().await;
    }
}
