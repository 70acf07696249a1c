//! The streamable HTTP transport: messages leave as POST requests and come on event streams.
//!
//! There is a stream for the connection and one for each session. All of them end in one queue.

mod access;
mod order;
mod posts;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

pub(super) use self::access::{Access, Failure, reason};
use self::stream::Stream;
use super::link::{End, Ends, Received};
use super::{RemoteAgent, RemoteError};
use crate::reconnect::Reconnect;
use crate::reconnect::envelope::{self, Envelope, Kind};
use crate::reconnect::queue::Sender;

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Session streams that are open at once.
const MAX_STREAMS: usize = 1024;

/// Requests that are remembered in each direction.
const MAX_REQUESTS: usize = 100_000;

/// How long the end of the connection may take.
const ENDING: Duration = Duration::from_secs(2);

/// A connection over HTTP.
struct Connection {
    access: Access,
    reconnect: Option<Reconnect>,
    incoming: Sender<Received>,
    end: Arc<End>,
    /// Known once `initialize` was answered.
    id: OnceLock<HeaderValue>,
    /// The stream of the connection was waited for.
    waited: AtomicBool,
    state: Mutex<State>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Stream>>,
    streams: HashMap<String, Arc<Stream>>,
    /// Requests of this client, by id as JSON.
    requests: HashMap<String, Asked>,
    /// Sessions of the agent's requests, by id as JSON: their answers have to name them.
    agent_requests: HashMap<String, String>,
    /// The server answers `_acp-sdk/session/state`.
    has_state: bool,
    /// The server numbers events, from 1 on, and continues after a number.
    has_event_ids: bool,
    probes: u64,
}

/// A request of this client.
struct Asked {
    method: String,
    session: Option<String>,
}

/// Opens a connection, which sends nothing yet.
pub(super) fn open(agent: &RemoteAgent, access: &Access, ends: Ends) {
    let connection = Arc::new(Connection {
        access: access.clone(),
        reconnect: agent.reconnect,
        incoming: ends.incoming,
        end: ends.end,
        id: OnceLock::new(),
        waited: AtomicBool::new(false),
        state: Mutex::default(),
        tasks: TaskTracker::new(),
    });
    tokio::spawn(async move {
        let end = connection.end.clone();
        tokio::select! {
            () = posts::run(&connection, ends.outgoing) => {}
            () = end.now.cancelled() => {}
        }
        connection.close().await;
        drop(connection);
        end.done.cancel();
    });
}

impl Connection {
    /// Tells the server of the end, lets the streams end, and ends them.
    async fn close(&self) {
        self.tasks.close();
        if self.id.get().is_some() && !self.end.now.is_cancelled() {
            let delete = self.access.request(Method::DELETE, self.headers(None));
            // A server that does not hear of it ends the connection by itself.
            let _ = timeout(ENDING, self.access.send(delete)).await;
            let _ = timeout(ENDING, self.tasks.wait()).await;
        }
        self.end.now.cancel();
        self.tasks.wait().await;
    }

    /// Returns the headers that name the connection and a session.
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

    /// Fails the connection: it does not exist any more on the server.
    fn gone(&self) {
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

    /// Returns the stream on which the end of a session may be answered; `None` if that comes on the
    /// stream of the connection.
    fn last_stream(self: &Arc<Self>, session: &str) -> Option<Arc<Stream>> {
        let known = self.state().streams.get(session).cloned();
        if known.is_some() || self.has_event_ids() {
            return known;
        }
        // The official servers answer there, and lose the answer if nobody reads it.
        let stream = self.stream(session)?;
        stream.leave();
        Some(stream)
    }

    /// Returns the stream of a session, which is opened if it is not known yet.
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

    /// Notes a message of this client before it is sent. Returns the session that its headers name.
    fn note(&self, envelope: &Envelope<'_>) -> Option<String> {
        let session = envelope.session().map(std::borrow::Cow::into_owned);
        let mut state = self.state();
        match (envelope.kind(), envelope.id()) {
            (Kind::Request, Some(id)) if state.requests.len() < MAX_REQUESTS => {
                let asked = Asked {
                    method: envelope.method.as_deref().unwrap_or_default().to_owned(),
                    session: session.clone(),
                };
                state.requests.insert(id.to_owned(), asked);
            }
            (Kind::Answer, Some(id)) => return state.agent_requests.remove(id),
            _ => {}
        }
        session
    }

    /// Passes on a message that came on a stream; `false` when nobody receives any more.
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
                Next::Pass => None,
                Next::Hold(session) => Some(session),
                Next::Swallow => return true,
            },
            _ => None,
        };
        if let Some(stream) = hold {
            // What else the stream has does not wait for it.
            self.tasks
                .spawn(order::pass_on_after(self.clone(), stream, message));
            return true;
        }
        self.incoming.send(Received::Message(message)).await
    }

    /// Notes the answer to a request of this client.
    fn answered(self: &Arc<Self>, id: &str, envelope: &Envelope<'_>, from: Option<&str>) -> Next {
        let mut state = self.state();
        let Some(asked) = state.requests.remove(id) else {
            return Next::Pass;
        };
        let succeeded = envelope.error.is_none();
        let stream = asked.session.as_deref();
        let stream = stream.and_then(|session| state.streams.get(session).cloned());
        if asked.method == order::PROBE && id.starts_with(order::PROBE_ID) {
            if let Some(stream) = stream {
                stream.probed();
            }
            return Next::Swallow;
        }
        if let Some(stream) = &stream {
            if envelope::leaves_session(&asked.method) && succeeded {
                stream.leave();
            }
            if state.close_if_left(stream, &asked) {
                return Next::Pass;
            }
        }
        if envelope::joins_session(&asked.method) && succeeded {
            let Some(stream) = stream else {
                return Next::Pass;
            };
            stream.retry();
            // On the session's stream it is behind the replay already.
            return match from.is_none() && stream.is_open() {
                true => Next::Hold(stream),
                false => Next::Pass,
            };
        }
        drop(state);
        if let Some(session) = envelope.new_session()
            && let Some(stream) = self.stream(&session)
            && asked.method == "session/new"
        {
            stream.starts();
        }
        Next::Pass
    }

    /// Notes the answer to `initialize`.
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
    /// Closes the stream of a session that has ended, once nothing more is expected on it.
    fn close_if_left(&mut self, stream: &Arc<Stream>, answered: &Asked) -> bool {
        // The prompt that the end of a session cancels is answered on its stream.
        let mut others = self.requests.values();
        let is_done = stream.is_left() && !others.any(|other| other.session == answered.session);
        if is_done {
            self.streams.retain(|_, other| !Arc::ptr_eq(other, stream));
            stream.close();
        }
        is_done
    }

    /// Forgets a request that was refused.
    fn refused(&mut self, id: &str) {
        let Some(asked) = self.requests.remove(id) else {
            return;
        };
        let stream = asked.session.as_deref();
        if let Some(stream) = stream.and_then(|session| self.streams.get(session).cloned()) {
            self.close_if_left(&stream, &asked);
        }
    }
}

/// What becomes of an answer.
enum Next {
    Pass,
    /// It waits for what the stream has.
    Hold(Arc<Stream>),
    /// It is of this transport's own making.
    Swallow,
}
