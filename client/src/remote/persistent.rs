//! A connection to a remote agent that is opened again when it is lost, for a program that has its own
//! connection of `acp-sdk`.

use acp_sdk::ChannelTransport;
use tokio::sync::watch;

use super::{RemoteAgent, RemoteConnector};
use crate::error::{Error, Result};
use crate::reconnect::{Bridge, ConnectionState};

/// A connection to a remote agent. Dropped, it is cut.
#[derive(Debug)]
pub struct PersistentConnection(Bridge);

impl PersistentConnection {
    /// Connects, and returns the transport for a connection of `acp-sdk`.
    ///
    /// # Errors
    ///
    /// Fails when an option of the agent is invalid, the server cannot be reached, or it rejects the
    /// connection.
    pub async fn open(agent: RemoteAgent) -> Result<(Self, ChannelTransport)> {
        let connector = RemoteConnector::new(agent)?;
        let state = watch::Sender::new(ConnectionState::Open);
        let (bridge, transport) = Bridge::open(connector, state).await?;
        Ok((Self(bridge), transport))
    }

    /// Returns the error with which the connection has ended; `None` while it is open.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.0.failure()
    }

    /// Waits until all messages are sent and the agent is notified of the end. It is not opened again.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}
