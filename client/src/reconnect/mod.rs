//! A connection of `acp-sdk` that survives the loss of the connection to the agent.
//!
//! A [`Connector`] opens connections of raw messages, to a URL or to a process that it starts. The
//! [`Bridge`] forwards messages between the current one and `acp-sdk`. [`resume`] decides which
//! messages either side receives after a reconnect.

mod backoff;
mod bridge;
pub(crate) mod envelope;
mod handshake;
pub mod message;
mod own;
pub(crate) mod queue;
mod resume;
mod settings;
mod state;

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

pub use self::backoff::Backoff;
pub use self::bridge::Bridge;
pub use self::own::{GAP, RESTARTED, SessionGap, is_lost_request};
pub(crate) use self::own::{OWN, is_restart, mark};
pub use self::settings::Reconnect;
pub use self::state::ConnectionState;
use crate::error::Error;

/// Opens connections to one agent, at most one at a time.
pub trait Connector: Send + 'static {
    /// Sends on a connection.
    type Sender: LinkSender;
    /// Receives on it.
    type Receiver: LinkReceiver;

    /// Opens a connection, after shutting down the rest of the previous one.
    ///
    /// # Errors
    ///
    /// Another attempt may succeed if the error is temporary.
    fn open(
        &mut self,
    ) -> impl Future<Output = Result<(Self::Sender, Self::Receiver), Error>> + Send;

    /// Returns the reconnect settings; `None` disables reconnecting.
    fn reconnect(&self) -> Option<Reconnect>;

    /// Returns the timeout of `initialize` and `authenticate` on another connection.
    fn answer_limit(&self) -> Duration;

    /// Returns whether each connection is to a new process, which has none of the previous one's
    /// terminals and MCP servers.
    fn is_restart(&self) -> bool;

    /// Returns the error for an agent that does not answer `method` on another connection.
    fn unresponsive(&self, method: &str) -> Error;

    /// Returns the error for an agent that rejects `initialize` on another connection.
    fn refused(&self, reason: &str) -> Error;

    /// Returns the error for a connection that could not be opened again within `limit`.
    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error;
}

/// Sends messages on one connection. Dropping it closes this side after sending queued messages.
pub trait LinkSender: Send + Sync {
    /// Sends a message after waiting for capacity. Sends nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// Fails when the connection is closed; the receiver has the reason.
    fn send(&self, message: Bytes) -> impl Future<Output = Result<(), Closed>> + Send;
}

/// Receives messages of one connection. Dropping it closes the connection.
pub trait LinkReceiver: Send {
    /// Receives the next message; `None` after the end of a connection that this side has closed.
    /// Loses nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// Fails with the reason for which the connection has ended.
    fn receive(&mut self) -> impl Future<Output = Result<Option<Received>, Error>> + Send;

    /// Returns a watch on why the agent cannot be reached, while the connection may still exist there;
    /// `None` for connections that end with that.
    fn trouble(&self) -> Option<watch::Receiver<Option<Error>>> {
        None
    }

    /// Ends the connection without notifying the agent, which would end its turns: another one
    /// follows.
    fn abandon(&self) {}

    /// Waits until all messages are sent and the agent is notified of the end, after the sender's drop.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// The error for sending on a closed connection.
#[derive(Debug)]
pub struct Closed;

/// A message or a rejection received on a connection.
#[derive(Debug)]
pub enum Received {
    /// A message of the agent: one JSON text, unchanged.
    Message(Bytes),
    /// A message of this client was rejected; the connection continues.
    Refused(Refused),
}

/// A message that the server rejected.
#[derive(Debug)]
pub struct Refused {
    /// The id of the request, as JSON; `None` if it was not a request.
    pub request: Option<String>,
    /// The reason.
    pub error: Error,
    /// The JSON-RPC message in the rejection, if any.
    pub body: Option<Bytes>,
    /// No response was received, so the agent may have executed the request.
    pub is_uncertain: bool,
}

#[cfg(test)]
mod tests;
