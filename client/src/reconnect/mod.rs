//! A connection of `acp-sdk` that outlives the ones to the agent behind it.
//!
//! A [`Connector`] opens connections of raw messages: to a URL, or to a process that it starts. The
//! [`Bridge`] joins one after the other to the connection of `acp-sdk`, and [`resume`] decides what
//! either side is sent when one takes the place of another.

mod backoff;
mod bridge;
pub(crate) mod envelope;
mod hello;
pub(crate) mod queue;
mod resume;
mod settings;
mod state;

use std::time::Duration;

use bytes::Bytes;

#[cfg(feature = "remote")]
pub(crate) use self::backoff::Backoff;
pub(crate) use self::bridge::Bridge;
pub(crate) use self::resume::{GAP, LOST, RESTARTED};
pub use self::settings::Reconnect;
pub use self::state::ConnectionState;
use crate::error::Error;

/// Opens connections to one agent, one after the other.
pub(crate) trait Connector: Send + 'static {
    type Sender: LinkSender;
    type Receiver: LinkReceiver;

    /// Opens a connection. What is left of the one before is ended first.
    ///
    /// # Errors
    ///
    /// Another attempt may succeed if the error [is temporary](Error::is_temporary).
    fn open(
        &mut self,
    ) -> impl Future<Output = Result<(Self::Sender, Self::Receiver), Error>> + Send;

    /// Returns how a lost connection is opened again; `None`: not at all.
    fn reconnect(&self) -> Option<Reconnect>;

    /// Returns how long a connection must last until the waits are short again after its loss.
    fn healthy_after(&self) -> Duration;

    /// Returns how long the agent may take to answer `initialize`.
    fn answer_limit(&self) -> Duration;

    /// Returns whether another connection leads to another process, which has nothing of what the
    /// one before had started.
    fn is_restart(&self) -> bool;

    /// Returns the error of an agent that does not answer `initialize`, because of `reason`.
    fn silent(&self, reason: &str) -> Error;

    /// Returns the error of an agent that refuses to be initialized again.
    fn refused(&self, reason: &str) -> Error;

    /// Returns the error of a connection that could not be opened again in time.
    fn gave_up(&self, limit: Duration, last: &Error) -> Error;
}

/// Sends messages on one connection. Dropped, it closes this side: what was sent still arrives.
pub(crate) trait LinkSender: Send + Sync {
    /// Sends a message when there is room for it. Sends nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// When nothing can be sent any more. The receiver has the reason.
    fn send(&self, message: Bytes) -> impl Future<Output = Result<(), Closed>> + Send;
}

/// Receives messages of one connection. Dropped, it ends the connection.
pub(crate) trait LinkReceiver: Send {
    /// Receives what comes next; `None` after the end of a connection that this side has closed.
    /// Loses nothing if the future is dropped.
    ///
    /// # Errors
    ///
    /// The reason for which the connection has ended.
    fn receive(&mut self) -> impl Future<Output = Result<Option<Received>, Error>> + Send;

    /// Waits until everything was sent and the agent knows of the end, after the sender was dropped.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

/// Nothing can be sent on a connection any more.
#[derive(Debug)]
pub(crate) struct Closed;

/// What came on a connection.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message of the agent: one JSON text, as it came.
    Message(Bytes),
    /// A message of this client was not accepted, and the connection goes on.
    #[cfg_attr(
        not(feature = "remote"),
        expect(dead_code, reason = "a process refuses nothing, a server does")
    )]
    Refused(Refused),
}

/// A message that was not accepted.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The id of the request, as JSON; `None` if it was no request.
    pub(crate) request: Option<String>,
    /// Why.
    pub(crate) error: Error,
    /// The JSON-RPC message with which it was refused, if there was one.
    pub(crate) body: Option<Bytes>,
    /// The agent may have carried it out all the same: no response came.
    pub(crate) is_uncertain: bool,
}
