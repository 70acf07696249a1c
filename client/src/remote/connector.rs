//! Opens connections to a remote agent, over HTTP or WebSocket.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::http::{self, Access};
use super::link::{self, RawReceiver, RawSender};
use super::{RemoteAgent, RemoteError, websocket};
use crate::error::{Error, Result};
use crate::reconnect::{self, Closed, Connector, LinkReceiver, LinkSender, Reconnect};

/// Connects to an agent to exchange raw messages, without `acp-sdk` in between.
///
/// Over WebSocket this includes the handshake. Over HTTP nothing is sent before the first message,
/// which must be `initialize`. Messages are sent in order. Up to 1 MiB is received in advance.
///
/// # Errors
///
/// Fails when the server cannot be reached or rejects the WebSocket handshake, or an option is invalid.
pub async fn connect_raw(agent: &RemoteAgent) -> Result<(RawSender, RawReceiver), RemoteError> {
    let access = Access::new(agent)?;
    open(agent, &access).await
}

/// Connects with the cookies of an earlier connection.
async fn open(
    agent: &RemoteAgent,
    access: &Access,
) -> Result<(RawSender, RawReceiver), RemoteError> {
    let (sender, receiver, endpoints) = link::ends(access.url());
    if agent.is_websocket {
        websocket::open(agent, access, endpoints).await?;
    } else {
        http::open(agent, access, endpoints);
    }
    Ok((sender, receiver))
}

/// Opens connections to one URL.
#[derive(Debug)]
pub(crate) struct RemoteConnector {
    agent: RemoteAgent,
    /// Keeps the cookies of earlier connections.
    access: Access,
}

impl RemoteConnector {
    /// # Errors
    ///
    /// Fails when an option of the agent is invalid.
    pub(crate) fn new(agent: RemoteAgent) -> Result<Self, RemoteError> {
        let access = Access::new(&agent)?;
        Ok(Self { agent, access })
    }

    fn lost(&self, reason: &str) -> Error {
        let (url, reason) = (self.agent.url(), reason.to_owned());
        RemoteError::Lost { url, reason }.into()
    }
}

impl Connector for RemoteConnector {
    type Sender = RawSender;
    type Receiver = RawReceiver;

    async fn open(&mut self) -> Result<(RawSender, RawReceiver)> {
        Ok(open(&self.agent, &self.access).await?)
    }

    fn reconnect(&self) -> Option<Reconnect> {
        self.agent.reconnect
    }

    fn answer_limit(&self) -> Duration {
        self.access.limits.response
    }

    fn is_restart(&self) -> bool {
        false
    }

    fn unresponsive(&self, method: &str) -> Error {
        self.lost(&format!("the agent does not answer {method}"))
    }

    fn refused(&self, reason: &str) -> Error {
        let (url, reason) = (self.agent.url(), reason.to_owned());
        RemoteError::Protocol { url, reason }.into()
    }

    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error {
        let (url, reason) = (self.agent.url(), last.to_string());
        RemoteError::ReconnectTimeout { url, limit, reason }.into()
    }
}

impl LinkSender for RawSender {
    async fn send(&self, message: Bytes) -> Result<(), Closed> {
        Self::send(self, message).await.map_err(|_| Closed)
    }
}

impl LinkReceiver for RawReceiver {
    async fn receive(&mut self) -> Result<Option<reconnect::Received>> {
        Ok(Self::receive(self).await?.map(Into::into))
    }

    fn trouble(&self) -> Option<watch::Receiver<Option<Error>>> {
        Some(Self::trouble(self))
    }

    fn abandon(&self) {
        Self::abandon(self);
    }

    async fn closed(&self) {
        Self::closed(self).await;
    }
}

impl From<link::Received> for reconnect::Received {
    fn from(received: link::Received) -> Self {
        match received {
            link::Received::Message(message) => Self::Message(message),
            link::Received::Refused(refused) => Self::Refused(reconnect::Refused {
                request: refused.request,
                error: refused.error.into(),
                body: refused.body,
                is_uncertain: refused.is_uncertain,
            }),
        }
    }
}
