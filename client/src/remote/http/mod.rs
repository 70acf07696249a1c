//! The streamable HTTP transport: sends POST requests and receives event streams.
//!
//! The connection has one stream, and each session another. All feed one queue.

mod access;
mod order;
mod posts;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_sdk::facts::Attachment;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use self::access::{Access, Failure, reason};
use self::stream::Stream;
use super::link::{End, Endpoints, Received};
use super::{RemoteAgent, RemoteError};
use crate::reconnect::Reconnect;
use crate::reconnect::envelope::{self, Envelope, Kind};
use crate::reconnect::queue::Sender;

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum number of open session streams.
const MAX_STREAMS: usize = 1024;

/// Maximum number of tracked requests in each direction.
const MAX_REQUESTS: usize = 100_000;

/// Timeout of the DELETE request that ends the connection, and of the streams' end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection over HTTP.
struct Connection {
    access: Access,
    reconnect: Option<Reconnect>,
    incoming: Sender<Received>,
    end: Arc<End>,
    /// Set once `initialize` is answered.
    id: OnceLock<HeaderValue>,
    /// Whether a message has waited for the connection's stream.
    waited: AtomicBool,
    /// Cancelled when this client ends the connection: no stream is opened any more.
    closing: CancellationToken,
    state: Mutex<State>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Stream>>,
    streams: HashMap<String, Arc<Stream>>,
    /// Requests of this client in flight, by id as JSON.
    requests: HashMap<String, PendingRequest>,
    /// Sessions of the agent's requests, by id as JSON: responses must name them in a header.
    agent_requests: HashMap<String, String>,
    /// The server supports `_acp-sdk/session/state`.
    has_state: bool,
    /// The server numbers events from 1 and resumes after any number.
    has_event_ids: bool,
    probes: u64,
}

/// A request of this client in flight.
struct PendingRequest {
    method: String,
    session: Option<String>,
}

/// Opens a connection without sending a request.
pub(super) fn open(agent: &RemoteAgent, access: &Access, endpoints: Endpoints) {
    let connection = Arc::new(Connection {
        access: access.clone(),
        reconnect: agent.reconnect,
        incoming: endpoints.incoming,
        end: endpoints.end,
        id: OnceLock::new(),
        waited: AtomicBool::new(false),
        closing: CancellationToken::new(),
        state: Mutex::default(),
        tasks: TaskTracker::new(),
    });
    tokio::spawn(async move {
        let end = connection.end.clone();
        tokio::select! {
            () = posts::run(&connection, endpoints.outgoing) => {}
            () = end.now.cancelled() => {}
        }
        connection.close().await;
        drop(connection);
        end.done.cancel();
    });
}

impl Connection {
    /// Sends the DELETE request of the connection, then waits for the streams and aborts them.
    async fn close(&self) {
        self.tasks.close();
        self.closing.cancel();
        if self.id.get().is_some() && !self.end.now.is_cancelled() {
            let delete = self.access.request(Method::DELETE, self.headers(None));
            // A server that does not receive it ends the connection by a timeout.
            let _ = timeout(CLOSE_TIMEOUT, self.access.send(delete)).await;
            let _ = timeout(CLOSE_TIMEOUT, self.tasks.wait()).await;
        }
        self.end.now.cancel();
        self.tasks.wait().await;
    }

    /// Sends a request and records whether the server can be reached; `what` describes the request.
    async fn send(&self, request: RequestBuilder, what: &str) -> Result<Response, Failure> {
        let sent = self.access.send(request).await;
        let failure = sent.as_ref().err();
        let trouble = failure.filter(|failure| failure.is_unreachable());
        let trouble = trouble.map(|failure| self.access.error(failure, what));
        self.end.set_trouble(trouble);
        sent
    }

    /// Returns the headers with the ids of the connection and the session.
    fn headers(&self, session: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = self.id.get() {
            headers.insert(CONNECTION_ID, id.clone());
        }
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert(SESSION_ID, session);
        }
        headers
    }

    /// Fails the connection, because the server does not know it any more.
    fn fail_unknown(&self) {
        self.end.fail(RemoteError::Lost {
            url: self.access.url(),
            reason: "the server does not know the connection any more".to_owned(),
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the stream of the connection is open.
    fn is_streaming(&self) -> bool {
        let state = self.state();
        let stream = state.connection.as_ref();
        stream.is_some_and(|stream| stream.is_open())
    }

    fn has_event_ids(&self) -> bool {
        self.state().has_event_ids
    }

    /// Returns the stream for the response that ends a session; `None` for the connection's stream.
    fn last_stream(self: &Arc<Self>, session: &str) -> Option<Arc<Stream>> {
        let known = self.state().streams.get(session).cloned();
        if known.is_some() || self.has_event_ids() {
            return known;
        }
        // The official servers answer there, and drop the response if the stream has no reader.
        let stream = self.stream(session)?;
        stream.detach();
        Some(stream)
    }

    /// Returns the stream of a session and opens it if necessary.
    fn stream(self: &Arc<Self>, session: &str) -> Option<Arc<Stream>> {
        let mut state = self.state();
        if let Some(stream) = state.streams.get(session) {
            return Some(stream.clone());
        }
        let is_header = HeaderValue::from_str(session).is_ok() && !session.is_empty();
        if self.id.get().is_none() || !is_header || state.streams.len() >= MAX_STREAMS {
            return None;
        }
        let stream = Stream::new(Some(session.to_owned()));
        state.streams.insert(session.to_owned(), stream.clone());
        drop(state);
        self.tasks.spawn(stream::run(self.clone(), stream.clone()));
        Some(stream)
    }

    /// Records a message of this client before it is sent. Returns the session for its headers.
    fn record_message(&self, envelope: &Envelope<'_>) -> Option<String> {
        let session = envelope.session().map(std::borrow::Cow::into_owned);
        let mut state = self.state();
        match (envelope.kind(), envelope.id()) {
            (Kind::Request, Some(id)) if state.requests.len() < MAX_REQUESTS => {
                let pending = PendingRequest {
                    method: envelope.method.as_deref().unwrap_or_default().to_owned(),
                    session: session.clone(),
                };
                state.requests.insert(id.to_owned(), pending);
            }
            (Kind::Answer, Some(id)) => return state.agent_requests.remove(id),
            _ => {}
        }
        session
    }

    /// Forwards a message that a stream received; `false` when the receiver was dropped.
    async fn take(self: &Arc<Self>, from: Option<&str>, message: Bytes) -> bool {
        let envelope = Envelope::read(&message);
        let hold = match (envelope.kind(), envelope.id()) {
            (Kind::Request, Some(id)) => {
                let session = envelope.session();
                if let Some(session) = session.as_deref().or(from) {
                    let mut state = self.state();
                    if state.agent_requests.len() < MAX_REQUESTS {
                        state
                            .agent_requests
                            .insert(id.to_owned(), session.to_owned());
                    }
                }
                None
            }
            (Kind::Answer, Some(id)) => match self.answered(id, &envelope, from) {
                ResponseAction::Forward => None,
                ResponseAction::Delay(session) => Some(session),
                ResponseAction::Drop => return true,
            },
            _ => None,
        };
        if let Some(stream) = hold {
            // Later events of the stream do not wait for it.
            self.tasks
                .spawn(order::forward_after(self.clone(), stream, message));
            return true;
        }
        self.incoming.send(Received::Message(message)).await
    }

    /// Records the response to a request of this client.
    fn answered(
        self: &Arc<Self>,
        id: &str,
        envelope: &Envelope<'_>,
        from: Option<&str>,
    ) -> ResponseAction {
        let mut state = self.state();
        let Some(pending) = state.requests.remove(id) else {
            return ResponseAction::Forward;
        };
        let succeeded = envelope.error.is_none();
        let stream = pending.session.as_deref();
        let stream = stream.and_then(|session| state.streams.get(session).cloned());
        if pending.method == order::PROBE && id.starts_with(order::PROBE_ID) {
            if let Some(stream) = stream {
                stream.probed();
            }
            return ResponseAction::Drop;
        }
        let joins = envelope::attachment(&pending.method);
        if let Some(stream) = &stream {
            if joins == Attachment::Leaves && succeeded {
                stream.detach();
            }
            if state.close_if_detached(stream, &pending) {
                return ResponseAction::Forward;
            }
        }
        if joins == Attachment::Joins && succeeded {
            let Some(stream) = stream else {
                return ResponseAction::Forward;
            };
            // A response on the session's stream follows the replay.
            return match from.is_none() {
                true => ResponseAction::Delay(stream),
                false => ResponseAction::Forward,
            };
        }
        drop(state);
        if let Some(session) = envelope.new_session()
            && let Some(stream) = self.stream(&session)
            && joins == Attachment::Creates
            // A copy begins with the events of its source, which are not replayed.
            && pending.session.is_none()
        {
            stream.set_from_start();
        }
        ResponseAction::Forward
    }

    /// Records the response to `initialize`.
    fn initialized(self: &Arc<Self>, id: HeaderValue, answer: &[u8]) {
        let text = std::str::from_utf8(answer).unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let ours = &value["result"]["agentCapabilities"]["_meta"]["acp-sdk"];
        {
            let mut state = self.state();
            state.has_state = ours["session"]["state"] == true;
            state.has_event_ids = ours["eventId"] == true;
        }
        if self.id.set(id).is_ok() {
            let stream = Stream::new(None);
            self.state().connection = Some(stream.clone());
            self.tasks.spawn(stream::run(self.clone(), stream));
        }
    }
}

impl State {
    /// Closes the stream of a detached session once no response is pending on it.
    fn close_if_detached(&mut self, stream: &Arc<Stream>, answered: &PendingRequest) -> bool {
        // A prompt that is cancelled by the session's end is answered on its stream.
        let mut others = self.requests.values();
        let is_done =
            stream.is_detached() && !others.any(|other| other.session == answered.session);
        if is_done {
            self.streams.retain(|_, other| !Arc::ptr_eq(other, stream));
            stream.close();
        }
        is_done
    }

    /// Removes a request that the server rejected.
    fn refused(&mut self, id: &str) {
        let Some(pending) = self.requests.remove(id) else {
            return;
        };
        let stream = pending.session.as_deref();
        if let Some(stream) = stream.and_then(|session| self.streams.get(session).cloned()) {
            self.close_if_detached(&stream, &pending);
        }
    }
}

/// How to handle a response.
enum ResponseAction {
    Forward,
    /// Forward it after the pending events of the stream.
    Delay(Arc<Stream>),
    /// Drop it: it answers a probe.
    Drop,
}
