//! A session of a client that another node may have.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use acp_client::ConnectionState;
use acp_client::internal::message::{answer, replace};
use acp_client::internal::{Bridge, Envelope};
use acp_sdk::facts::Attachment;
use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{ChannelTransport, MessageTransport as _, RpcError};
use acp_server_remote::internal::Joined;
use bytes::Bytes;
use tokio::sync::watch;

use super::First;
use crate::Settings;
use crate::connector::NodeConnector;
use crate::place::{self, Place};

/// Bytes of messages that wait for the session's node before the client is not read.
const HELD_BYTES: usize = 256 << 10;

/// The wait before a session whose node cannot be reached is looked for again.
const RETRY_WAIT: Duration = Duration::from_millis(250);

/// Time limit for a node to take what its client has sent at last.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The id of a request of this layer, as JSON: the first ones of each connection.
const FIRST: &str = "\"node-first\"";

/// A connection for one session: it is looked for, opened, and opened again where the session goes.
pub(super) struct Upstream {
    state: State,
    /// Messages of the client that wait.
    held: VecDeque<Bytes>,
    held_bytes: usize,
    /// The requests of the client that are not answered, by id as JSON.
    requests: HashMap<Box<str>, Attachment>,
    /// A message of the node that the client has no room for.
    put_back: Option<Bytes>,
}

type Opening = Pin<Box<dyn Future<Output = Opened> + Send>>;

enum State {
    /// Looks for the session.
    Opening(Opening),
    Open(Open),
    /// The session is on this node, or the connection has ended.
    Done,
}

struct Open {
    channel: ChannelTransport,
    /// Requests of this layer that go before what the client sends.
    first: VecDeque<Bytes>,
    /// Whether one of these is not answered.
    is_asking: bool,
    has_begun: bool,
    bridge: Bridge,
}

enum Opened {
    Here,
    Connected(Bridge, ChannelTransport),
    Failed(String),
}

pub(super) enum Polled {
    /// A message of the node.
    Message(Bytes),
    /// This node has the session, or may open it: these messages are for its server.
    Here(Vec<Bytes>),
    /// The node cannot be reached: these are the answers.
    Refused(Vec<Bytes>),
    /// The connection has ended.
    Lost,
}

/// What the answer to a request means for an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Stays,
    /// The client is not attached to the session there any more.
    Left,
}

impl Upstream {
    pub(super) fn new(settings: Arc<Settings>, joined: Joined, session: SessionId) -> Self {
        Self {
            state: State::Opening(Box::pin(open(settings, joined, session))),
            held: VecDeque::new(),
            held_bytes: 0,
            requests: HashMap::new(),
            put_back: None,
        }
    }

    /// Takes a message of the node back, which is returned next.
    pub(super) fn put_back(&mut self, message: Bytes) {
        self.put_back = Some(message);
    }

    /// Takes a message for the node.
    pub(super) fn hold(&mut self, message: Bytes) {
        self.held_bytes += message.len();
        self.held.push_back(message);
    }

    pub(super) fn is_full(&self) -> bool {
        self.held_bytes > HELD_BYTES
    }

    /// Expects the answer to a request of the client.
    pub(super) fn expect(&mut self, id: &str, attachment: Attachment) {
        self.requests.insert(id.into(), attachment);
    }

    pub(super) fn answered(&mut self, id: &str, is_error: bool) -> Answered {
        let attachment = self.requests.remove(id);
        let leaves = match attachment {
            Some(Attachment::Leaves) => !is_error,
            Some(Attachment::Joins) => is_error,
            _ => false,
        };
        match leaves && self.requests.is_empty() && self.held.is_empty() {
            true => Answered::Left,
            false => Answered::Stays,
        }
    }

    /// Sends the node what waits, as far as there is room.
    ///
    /// # Errors
    ///
    /// When the connection has ended.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let State::Open(open) = &mut self.state else {
            return Ok(());
        };
        while !open.is_asking {
            let mut channel = Pin::new(&mut open.channel);
            let is_first = !open.first.is_empty();
            let queue = if is_first {
                &mut open.first
            } else {
                &mut self.held
            };
            if queue.is_empty() || channel.as_mut().poll_ready(cx)?.is_pending() {
                break;
            }
            if let Some(message) = queue.pop_front() {
                match is_first {
                    true => open.is_asking = true,
                    false => self.held_bytes -= message.len(),
                }
                channel.start_send(message)?;
            }
        }
        Ok(())
    }

    /// Ends the connection after what it has taken was sent.
    pub(super) fn close(self) {
        if let State::Open(Open {
            channel, bridge, ..
        }) = self.state
        {
            drop(channel);
            tokio::spawn(async move {
                // A node that takes nothing is not waited for.
                let _ = tokio::time::timeout(CLOSE_LIMIT, bridge.closed()).await;
            });
        }
    }

    /// Returns what the node has sent, or what has become of the connection.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, first: &First) -> Poll<Polled> {
        if let Some(message) = self.put_back.take() {
            return Poll::Ready(Polled::Message(message));
        }
        if let State::Opening(opening) = &mut self.state {
            let opened = ready!(opening.as_mut().poll(cx));
            self.state = State::Done;
            match opened {
                Opened::Here => return Poll::Ready(Polled::Here(self.held.drain(..).collect())),
                Opened::Failed(reason) => {
                    return Poll::Ready(Polled::Refused(self.refuse(&reason)));
                }
                Opened::Connected(bridge, channel) => {
                    let first = [&first.initialize, &first.authenticate];
                    let first = first.into_iter().flatten().map(with_first_id);
                    self.state = State::Open(Open {
                        channel,
                        first: first.collect(),
                        is_asking: false,
                        has_begun: false,
                        bridge,
                    });
                }
            }
        }
        loop {
            if self.send(cx).is_err() {
                return Poll::Ready(Polled::Lost);
            }
            let State::Open(open) = &mut self.state else {
                return Poll::Ready(Polled::Lost);
            };
            let received = ready!(Pin::new(&mut open.channel).poll_receive(cx));
            let Ok(Some(message)) = received else {
                return Poll::Ready(Polled::Lost);
            };
            if !open.is_asking {
                return Poll::Ready(Polled::Message(message));
            }
            let envelope = Envelope::read(&message);
            if envelope.id() != Some(FIRST) || envelope.method.is_some() {
                return Poll::Ready(Polled::Message(message));
            }
            open.is_asking = false;
            // A failed login shows when the session is joined.
            if let (Some(error), false) = (envelope.error, open.has_begun) {
                let reason = format!("its node refused to initialize: {}", error.get());
                return Poll::Ready(Polled::Refused(self.refuse(&reason)));
            }
            open.has_begun = true;
        }
    }

    /// Returns errors as the answers to all requests.
    fn refuse(&mut self, reason: &str) -> Vec<Bytes> {
        self.held.clear();
        self.held_bytes = 0;
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason);
        let error = serde_json::to_string(&error).unwrap_or_default();
        let requests = std::mem::take(&mut self.requests).into_keys();
        requests.map(|id| answer(&id, "error", &error)).collect()
    }
}

/// Looks for a session, and connects to its node. Asks again where it is while that node cannot be reached:
/// its leases may end meanwhile.
async fn open(settings: Arc<Settings>, joined: Joined, session: SessionId) -> Opened {
    let purpose = place::purpose(&joined.caller.role().access);
    if place::find(&joined.server, &session, purpose).await == Place::Here {
        return Opened::Here;
    }
    let began = tokio::time::Instant::now();
    loop {
        let connector = NodeConnector {
            session: session.clone(),
            joined: joined.clone(),
            secret: settings.secret.clone(),
            metrics: settings.metrics.clone(),
            limit: settings.takeover_limit,
        };
        let (state, _) = watch::channel(ConnectionState::Open);
        let error = match Bridge::open(connector, state).await {
            Ok((bridge, channel)) => return Opened::Connected(bridge, channel),
            Err(error) => error,
        };
        if began.elapsed() > settings.takeover_limit {
            return Opened::Failed(format!(
                "session {session} is on a node that cannot be reached: {error}. Try again later"
            ));
        }
        tokio::time::sleep(RETRY_WAIT).await;
        if place::find(&joined.server, &session, purpose).await == Place::Here {
            return Opened::Here;
        }
    }
}

/// Returns a request with the id of this layer.
fn with_first_id(message: &Bytes) -> Bytes {
    match Envelope::read(message).id() {
        Some(id) => replace(message, id, FIRST),
        None => message.clone(),
    }
}
