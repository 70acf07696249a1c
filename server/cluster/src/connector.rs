//! Connections to whichever node has a session: each attempt asks again.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use acp_client::internal::{Closed, Connector, LinkReceiver, LinkSender, Received};
use acp_client::remote::{RawReceiver, RawSender, RemoteAgent, RemoteError, Token, connect_raw};
use acp_client::{Error, Reconnect};
use acp_sdk::v1::SessionId;
use acp_sdk::{ChannelTransport, ConnectionBuilder, MessageTransport as _, Transport, channel};
use acp_server_remote::Metrics;
use acp_server_remote::internal::{Joined, NODE_CALLER};
use bytes::Bytes;

use crate::place::{self, Place, Purpose};

/// Bytes between a connection and the server of this node, in each direction.
const WAITING_BYTES: usize = 256 << 10;

/// Time limit for a node to accept a connection, and to answer `initialize`.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Opens connections for one session of one client.
#[derive(Debug)]
pub(crate) struct NodeConnector {
    pub(crate) session: SessionId,
    pub(crate) joined: Joined,
    pub(crate) secret: Token,
    pub(crate) metrics: Metrics,
    /// How long a session is looked for: until the leases of a dead node have ended, and some more.
    pub(crate) limit: Duration,
}

impl NodeConnector {
    async fn connect(&self, address: &str) -> Result<(NodeSender, NodeReceiver), Error> {
        let url = format!("{}{}", address.trim_end_matches('/'), self.joined.path);
        let url = match url.split_once("://") {
            Some(("https", rest)) => format!("wss://{rest}"),
            Some((_, rest)) => format!("ws://{rest}"),
            None => format!("ws://{url}"),
        };
        let agent = RemoteAgent::new(&url)?
            .token(self.secret.clone())
            .header(NODE_CALLER, &self.joined.caller.header())?
            .connect_timeout(ANSWER_LIMIT)
            // The secret of the nodes protects their network; an address with https:// has TLS.
            .insecure();
        let (sender, receiver) = connect_raw(&agent).await?;
        Ok((NodeSender::Node(sender), NodeReceiver::Node(receiver)))
    }

    fn purpose(&self) -> Purpose {
        place::purpose(&self.joined.caller.role().access)
    }

    fn here(&self) -> (NodeSender, NodeReceiver) {
        let (near, far) = channel(WAITING_BYTES);
        let Joined { server, caller, .. } = &self.joined;
        let builder = ConnectionBuilder::new();
        let mut running = server.attach_role(builder, Transport::messages(far), caller.role());
        tokio::spawn(async move { running.closed().await });
        let near = Here(Arc::new(Mutex::new(near)));
        (NodeSender::Here(near.clone()), NodeReceiver::Here(near))
    }

    fn lost(&self, reason: impl Into<String>) -> Error {
        let url = format!("the node with session {}", self.session);
        let reason = reason.into();
        RemoteError::Lost { url, reason }.into()
    }
}

impl Connector for NodeConnector {
    type Sender = NodeSender;
    type Receiver = NodeReceiver;

    async fn open(&mut self) -> Result<(NodeSender, NodeReceiver), Error> {
        match place::find(&self.joined.server, &self.session, self.purpose()).await {
            Place::Here => Ok(self.here()),
            Place::Node(address) => {
                let connected = self.connect(&address).await;
                connected.inspect_err(|_| self.metrics.node_failure())
            }
        }
    }

    fn reconnect(&self) -> Option<Reconnect> {
        let waits = Reconnect::default()
            .with_waits(Duration::from_millis(100), Duration::from_secs(1))
            .with_limit(self.limit);
        Some(waits)
    }

    fn answer_limit(&self) -> Duration {
        ANSWER_LIMIT
    }

    fn is_restart(&self) -> bool {
        false
    }

    fn unresponsive(&self, method: &str) -> Error {
        self.lost(format!("it does not answer {method}"))
    }

    fn refused(&self, reason: &str) -> Error {
        // Another attempt may find the session on another node.
        self.lost(reason)
    }

    fn reconnect_timeout(&self, limit: Duration, last: &Error) -> Error {
        self.lost(format!("no node had it for {} s: {last}", limit.as_secs()))
    }
}

/// The end of a connection to the server of this node.
#[derive(Clone, Debug)]
pub(crate) struct Here(Arc<Mutex<ChannelTransport>>);

impl Here {
    fn lock(&self) -> MutexGuard<'_, ChannelTransport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) enum NodeSender {
    Here(Here),
    Node(RawSender),
}

#[derive(Debug)]
pub(crate) enum NodeReceiver {
    Here(Here),
    Node(RawReceiver),
}

impl LinkSender for NodeSender {
    async fn send(&self, message: Bytes) -> Result<(), Closed> {
        match self {
            Self::Node(sender) => LinkSender::send(sender, message).await,
            Self::Here(here) => {
                let mut message = Some(message);
                let sent = poll_fn(|cx| {
                    let mut transport = here.lock();
                    let mut transport = Pin::new(&mut *transport);
                    match transport.as_mut().poll_ready(cx) {
                        Poll::Ready(Ok(())) => {
                            let message = message.take().unwrap_or_default();
                            Poll::Ready(transport.start_send(message))
                        }
                        other => other,
                    }
                });
                sent.await.map_err(|_| Closed)
            }
        }
    }
}

impl LinkReceiver for NodeReceiver {
    async fn receive(&mut self) -> Result<Option<Received>, Error> {
        match self {
            Self::Node(receiver) => LinkReceiver::receive(receiver).await,
            Self::Here(here) => {
                let received = poll_fn(|cx| {
                    let mut transport = here.lock();
                    Pin::new(&mut *transport).poll_receive(cx)
                });
                match received.await {
                    Ok(Some(message)) => Ok(Some(Received::Message(message))),
                    // As the loss of another node: the session may be there by now.
                    Ok(None) | Err(_) => Err(RemoteError::Lost {
                        url: "this node".to_owned(),
                        reason: "the server closed the connection".to_owned(),
                    }
                    .into()),
                }
            }
        }
    }

    fn abandon(&self) {
        if let Self::Node(receiver) = self {
            LinkReceiver::abandon(receiver);
        }
    }

    async fn closed(&self) {
        if let Self::Node(receiver) = self {
            LinkReceiver::closed(receiver).await;
        }
    }
}
