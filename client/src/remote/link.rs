//! An open connection of raw messages, whatever carries it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{RemoteAgent, RemoteError, http, websocket};
use crate::reconnect::queue::{self, Receiver, Sender, Weight};

/// Bytes that wait in each direction.
const QUEUED_BYTES: usize = 1 << 20;

/// Something that came from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// A message of the agent: one JSON text, as it came.
    Message(Bytes),
    /// A message of this client was not accepted, and the connection goes on.
    Refused(Refused),
}

/// A message that the server did not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The id of the request, as JSON; `None` if it was no request.
    pub request: Option<String>,
    /// Why.
    pub error: RemoteError,
    /// The JSON-RPC message in the response's body, if there was one.
    pub body: Option<Bytes>,
    /// The server may have carried it out all the same: no response came.
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

/// Sends raw messages to a remote agent. Dropping it closes this side of the connection: what was
/// sent is still delivered.
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

/// How a connection ends.
#[derive(Debug, Default)]
pub(super) struct End {
    url: String,
    /// The first reason there was.
    reason: Mutex<Option<RemoteError>>,
    /// Nothing more is exchanged.
    pub(super) now: CancellationToken,
    /// The tasks have ended.
    pub(super) done: CancellationToken,
}

impl End {
    /// Ends the connection because of an error.
    pub(super) fn fail(&self, error: RemoteError) {
        self.lock().get_or_insert(error);
        self.now.cancel();
    }

    pub(super) fn reason(&self) -> Option<RemoteError> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<RemoteError>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a connection that its tasks hold.
pub(super) struct Ends {
    pub(super) outgoing: Receiver<Bytes>,
    pub(super) incoming: Sender<Received>,
    pub(super) end: Arc<End>,
}

/// Connects to an agent for the exchange of raw messages, without `acp-sdk` in between.
///
/// Over WebSocket this includes the handshake; over HTTP nothing is sent before the first message,
/// which must be `initialize`. Messages are sent in order. At most 1 MiB is received ahead.
///
/// # Errors
///
/// When the server cannot be reached or refuses the WebSocket, or an option cannot be used.
pub async fn connect_raw(agent: &RemoteAgent) -> Result<(RawSender, RawReceiver), RemoteError> {
    let access = http::Access::new(agent)?;
    open(agent, &access).await
}

/// The same, with the cookies of an earlier connection.
pub(super) async fn open(
    agent: &RemoteAgent,
    access: &http::Access,
) -> Result<(RawSender, RawReceiver), RemoteError> {
    let (outgoing, to_send) = queue::queue(QUEUED_BYTES);
    let (received, incoming) = queue::queue(QUEUED_BYTES);
    let end = Arc::new(End {
        url: access.url(),
        ..End::default()
    });
    let ends = Ends {
        outgoing: to_send,
        incoming: received,
        end: end.clone(),
    };
    if agent.is_websocket {
        websocket::open(agent, access, ends).await?;
    } else {
        http::open(agent, access, ends);
    }
    let sender = RawSender {
        outgoing,
        end: end.clone(),
    };
    Ok((sender, RawReceiver { incoming, end }))
}

impl RawSender {
    /// Sends a message when there is room for it. Whether the server accepts it is not awaited.
    /// Sends nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// The reason for which the connection has ended.
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
    /// Receives what comes next; `None` after the end of a connection that this side has closed.
    /// Loses nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// The reason for which the connection has ended.
    pub async fn receive(&mut self) -> Result<Option<Received>, RemoteError> {
        if let Some(received) = self.incoming.receive().await {
            return Ok(Some(received));
        }
        match self.end.reason() {
            Some(reason) => Err(reason),
            None => Ok(None),
        }
    }

    /// Waits until everything was sent and the server knows of the end, after the [`RawSender`] was
    /// dropped.
    pub async fn closed(&self) {
        self.end.done.cancelled().await;
    }
}
