//! A client's connection, of which some sessions are on other nodes.
//!
//! ```text
//! client <-> Relay <-> the server of this node: everything without a session, and its sessions
//!                  <-> Upstream, one for each other session: a connection that follows the session
//! ```
//!
//! Messages of one session stay in order; the responses that an upstream sends are between its
//! notifications as the other node wrote them. There is no order between sessions.

mod upstream;

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acp_client::internal::message::replace;
use acp_client::internal::{Envelope, Kind, SessionGap, attachment, login};
use acp_sdk::facts::{self, Attachment, Login, Scope};
use acp_sdk::v1::SessionId;
use acp_sdk::{ChannelTransport, MessageTransport, Transport, channel};
use acp_server_remote::internal::Joined;
use bytes::Bytes;

use self::upstream::{Answered, Polled, Upstream};
use crate::Settings;
use crate::ids::NodeRequests;

/// Bytes between the client and the server of this node, in each direction.
const WAITING_BYTES: usize = 256 << 10;

/// The maximum number of sessions on other nodes that a client uses.
const UPSTREAMS: usize = 1_000;

/// Messages that are passed on before other tasks have their turn.
const BATCH: usize = 64;

/// Why a relay ends.
enum End {
    /// The client, or the server of this node, has closed its side.
    Closed,
    /// A session cannot be continued: the client connects again, to whichever node, and continues where it
    /// is.
    Lost,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// Starts a relay. Returns the transport for the server of this node.
pub(crate) fn start(
    settings: Arc<Settings>,
    client: Pin<Box<dyn MessageTransport>>,
    joined: Joined,
) -> Transport {
    let (near, far) = channel(WAITING_BYTES);
    let relay = Relay {
        settings,
        joined,
        client,
        here: near,
        unflushed: false,
        to_here: None,
        first: First::default(),
        upstreams: HashMap::new(),
        requests: NodeRequests::default(),
    };
    tokio::spawn(relay.run());
    Transport::messages(far)
}

/// What a client sends at first, which every connection in its name begins with.
#[derive(Debug, Default)]
struct First {
    initialize: Option<Bytes>,
    authenticate: Option<Bytes>,
}

struct Relay {
    settings: Arc<Settings>,
    joined: Joined,
    client: Pin<Box<dyn MessageTransport>>,
    here: ChannelTransport,
    /// Whether the client was given messages since the last flush.
    unflushed: bool,
    /// A message that waits for room on the way to the server of this node.
    to_here: Option<Bytes>,
    first: First,
    upstreams: HashMap<Box<str>, Upstream>,
    requests: NodeRequests,
}

impl Relay {
    async fn run(mut self) {
        let end = loop {
            if let Err(end) = poll_fn(|cx| self.poll_pass(cx)).await {
                break end;
            }
        };
        if let End::Lost = end {
            tracing::info!(
                "a client must connect again: its session is on no node that can be reached"
            );
        }
        // What the client has sent before its end, such as a cancellation, reaches the other nodes.
        for upstream in self.upstreams.into_values() {
            upstream.close();
        }
        // The client may be gone.
        let _ = poll_fn(|cx| self.client.as_mut().poll_close(cx)).await;
    }

    /// Passes messages on in both directions; pending when nothing can be passed on.
    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut passed = 0;
        while passed < BATCH {
            let to_client = self.pass_to_client(cx)?;
            let from_client = self.pass_from_client(cx)?;
            if !to_client && !from_client {
                break;
            }
            passed += 1;
        }
        if self.unflushed && self.client.as_mut().poll_flush(cx)?.is_ready() {
            self.unflushed = false;
        }
        match passed {
            BATCH => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    /// Gives the client a message of each source, as far as it has room; `false` if there was none.
    fn pass_to_client(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let mut passed = false;
        if self.client.as_mut().poll_ready(cx)?.is_pending() {
            return Ok(false);
        }
        match Pin::new(&mut self.here).poll_receive(cx)? {
            Poll::Ready(Some(message)) => {
                self.give(message)?;
                passed = true;
            }
            Poll::Ready(None) => return Err(End::Closed),
            Poll::Pending => {}
        }
        let mut ended = Vec::new();
        for (session, upstream) in &mut self.upstreams {
            if self.client.as_mut().poll_ready(cx)?.is_pending() {
                break;
            }
            let message = match upstream.poll(cx, &self.first) {
                Poll::Pending => continue,
                Poll::Ready(Polled::Message(message)) => message,
                Poll::Ready(Polled::Here(held)) => {
                    ended.push((session.clone(), held));
                    continue;
                }
                Poll::Ready(Polled::Refused(answers)) => {
                    for answer in answers {
                        self.client.as_mut().start_send(answer)?;
                    }
                    self.unflushed = true;
                    ended.push((session.clone(), Vec::new()));
                    continue;
                }
                Poll::Ready(Polled::Lost) => return Err(End::Lost),
            };
            let pace = self.joined.pace.as_ref();
            if pace.is_some_and(|pace| pace.holds(&message, cx.waker())) {
                upstream.put_back(message);
                continue;
            }
            passed = true;
            let envelope = Envelope::read(&message);
            let message = match (envelope.kind(), envelope.id()) {
                (Kind::Answer, Some(id)) => {
                    self.settings.metrics.node_request();
                    if upstream.answered(id, envelope.error.is_some()) == Answered::Left {
                        ended.push((session.clone(), Vec::new()));
                    }
                    Some(message)
                }
                (Kind::Request, Some(id)) => self.requests.add(session, id, &message),
                _ if is_gap(&envelope) => return Err(End::Lost),
                _ if envelope.cancelled_request().is_some() => {
                    self.requests.cancelled(session, &envelope, &message)
                }
                _ => Some(message),
            };
            if let Some(message) = message {
                self.client.as_mut().start_send(message)?;
                self.unflushed = true;
            }
        }
        for (session, held) in ended {
            passed = true;
            self.upstreams.remove(&session);
            self.requests.forget(&session);
            for message in held {
                self.send_here(message)?;
            }
        }
        Ok(passed)
    }

    fn give(&mut self, message: Bytes) -> io::Result<()> {
        self.unflushed = true;
        self.client.as_mut().start_send(message)
    }

    /// Takes a message of the client and routes it, if there is room; `false` if there is none.
    fn pass_from_client(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if let Some(message) = self.to_here.take() {
            match Pin::new(&mut self.here).poll_ready(cx)? {
                Poll::Ready(()) => Pin::new(&mut self.here).start_send(message)?,
                Poll::Pending => {
                    self.to_here = Some(message);
                    return Ok(false);
                }
            }
        }
        for upstream in self.upstreams.values_mut() {
            // What has ended is found when it is read.
            let _ = upstream.send(cx);
        }
        if self.upstreams.values().any(Upstream::is_full) {
            return Ok(false);
        }
        match self.client.as_mut().poll_receive(cx)? {
            Poll::Ready(Some(message)) => {
                self.route(message);
                Ok(true)
            }
            Poll::Ready(None) => Err(End::Closed),
            Poll::Pending => Ok(false),
        }
    }

    fn route(&mut self, message: Bytes) {
        let envelope = Envelope::read(&message);
        let method = envelope.method.as_deref();
        match (envelope.kind(), method) {
            (Kind::Answer, _) => {
                let id = envelope.id().unwrap_or_default();
                if !NodeRequests::is_ours(id) {
                    self.to_here = Some(message);
                } else if let Some(request) = self.requests.answered(id)
                    && let Some(upstream) = self.upstreams.get_mut(&request.session)
                {
                    upstream.hold(replace(&message, id, &request.id));
                }
            }
            (Kind::Request, Some("initialize")) => {
                self.first.initialize.get_or_insert_with(|| message.clone());
                self.to_here = Some(message);
            }
            (Kind::Request, Some(method)) if login(method) == Some(Login::In) => {
                self.first.authenticate = Some(message.clone());
                self.to_here = Some(message);
            }
            (Kind::Request | Kind::Notification, Some(method)) => {
                // The one that has the request ends it.
                if envelope.cancelled_request().is_some() {
                    for upstream in self.upstreams.values_mut() {
                        upstream.hold(message.clone());
                    }
                }
                let session = envelope.session().filter(|_| is_in_session(method));
                match session {
                    Some(session) => {
                        let id = envelope.id().map(|id| (id, attachment(method)));
                        self.route_to(&session, id, message.clone());
                    }
                    None => self.to_here = Some(message),
                }
            }
            _ => self.to_here = Some(message),
        }
    }

    /// Passes a message on to where its session is. `request`: its id as JSON, and what it does.
    fn route_to(&mut self, session: &str, request: Option<(&str, Attachment)>, message: Bytes) {
        if let Some(upstream) = self.upstreams.get_mut(session) {
            if let Some((id, attachment)) = request {
                upstream.expect(id, attachment);
            }
            return upstream.hold(message);
        }
        let server = &self.joined.server;
        let id = SessionId::from(session);
        // What is no request is for who is attached, and a copy is made by any node.
        let asks = request.filter(|(_, attachment)| *attachment != Attachment::Creates);
        let (Some(asks), None) = (asks, server.open_session(&id)) else {
            self.to_here = Some(message);
            return;
        };
        if self.upstreams.len() >= UPSTREAMS {
            self.to_here = Some(message);
            return;
        }
        let mut upstream = Upstream::new(self.settings.clone(), self.joined.clone(), id);
        upstream.expect(asks.0, asks.1);
        upstream.hold(message);
        self.upstreams.insert(session.into(), upstream);
    }

    fn send_here(&mut self, message: Bytes) -> io::Result<()> {
        // A few, which were held while the session was looked for: the channel takes them beyond its limit.
        Pin::new(&mut self.here).start_send(message)
    }
}

/// Returns whether a method is about the session that it names, and not about the connection.
fn is_in_session(method: &str) -> bool {
    match facts::of_agent(method) {
        Some(facts) => facts.scope == Scope::Session,
        // An extension: the agent with the session knows it.
        None => method.starts_with('_'),
    }
}

/// Returns whether a session could not be continued without a gap.
fn is_gap(envelope: &Envelope<'_>) -> bool {
    let params = envelope.params.map(|params| params.get());
    let method = envelope.method.as_deref();
    method.is_some_and(|method| SessionGap::read(method, params).is_some())
}
