//! The streamable HTTP transport: a POST for each message, and streams of events.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_schema::Attachment;
use acp_sdk::ErrorCode;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming as Body;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::stream::{self, Stream};
use super::{CLOSING, Incoming, Outgoing, RESPONSE, refusal};
use crate::transport::Endpoint;
use crate::wire::attachment;

/// How long a stream may take to open before a message is sent that needs it: some servers respond
/// only when there is an event.
const OPENING: Duration = Duration::from_secs(1);

/// How long a message waits for the response to the one before it. A server may hold the response
/// until it has the answer to a request of the agent, so answers wait for a shorter time.
const HELD: Duration = Duration::from_secs(10);
const ANSWER_HELD: Duration = Duration::from_millis(500);

/// How long the answer to `session/load` waits for the replay, which comes on another stream.
const REPLAY: Duration = Duration::from_secs(10);

/// The most requests that are remembered in each direction, and the most tasks at a time.
const REQUESTS: usize = 100_000;
const TASKS: usize = 1024;

/// A connection over HTTP.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) endpoint: Endpoint,
    incoming: Incoming,
    /// The headers that name the connection, once `initialize` is answered.
    id: OnceLock<HeaderMap>,
    state: Mutex<State>,
    /// Posts, streams, and answers that wait.
    tasks: Mutex<JoinSet<()>>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Why the connection has failed.
    reason: Option<String>,
    is_closing: bool,
    connection: Option<Arc<Stream>>,
    sessions: HashMap<String, Arc<Stream>>,
    /// The requests of the suite, by id as JSON: method and session.
    requests: HashMap<String, (String, Option<String>)>,
    /// The sessions of the agent's requests, by id as JSON: answers must name them in a header.
    agent_requests: HashMap<String, String>,
}

/// Exchanges messages until either side closes the connection.
///
/// # Errors
/// When it was not the suite that has closed it.
pub(super) async fn exchange(
    endpoint: Endpoint,
    outgoing: Outgoing,
    incoming: Incoming,
) -> Result<(), String> {
    let connection = Arc::new(Connection {
        endpoint,
        incoming,
        id: OnceLock::new(),
        state: Mutex::default(),
        tasks: Mutex::default(),
        failed: Notify::new(),
    });
    tokio::select! {
        () = connection.post_all(outgoing) => connection.close().await,
        () = connection.failed.notified() => {}
    }
    // They hold the connection.
    let mut tasks = std::mem::take(&mut *connection.tasks());
    tasks.shutdown().await;
    match connection.state().reason.take() {
        Some(reason) => Err(reason),
        None => Ok(()),
    }
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task until the connection ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        if tasks.len() >= TASKS {
            drop(tasks);
            return self.fail(format!("more than {TASKS} requests and streams are open"));
        }
        tasks.spawn(task);
    }

    /// Ends the connection, for the first of these reasons.
    pub(super) fn fail(&self, reason: String) {
        let mut state = self.state();
        if !state.is_closing {
            state.reason.get_or_insert(reason);
            self.failed.notify_one();
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state().is_closing
    }

    /// Returns the headers of a request.
    pub(super) fn headers(&self, session: Option<&str>) -> HeaderMap {
        let mut headers = self.endpoint.headers();
        headers.extend(self.id.get().cloned().unwrap_or_default());
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert("acp-session-id", session);
        }
        headers
    }

    /// Posts the messages in order, unless the server holds the response to one.
    async fn post_all(self: &Arc<Self>, mut outgoing: Outgoing) {
        let mut before: Option<Arc<Notify>> = None;
        while let Some(message) = outgoing.next().await {
            let value = serde_json::from_slice(&message).unwrap_or_default();
            let limit = match is_answer(&value) {
                _ if self.id.get().is_none() => RESPONSE,
                true => ANSWER_HELD,
                false => HELD,
            };
            if let Some(before) = before.take() {
                let _ = timeout(limit, before.notified()).await;
            }
            let (connection, done) = (self.clone(), Arc::new(Notify::new()));
            before = Some(done.clone());
            self.spawn(async move {
                connection.post(message, &value).await;
                done.notify_one();
            });
        }
        if let Some(before) = before {
            let _ = timeout(HELD, before.notified()).await;
        }
    }

    /// Ends the connection on the server, and takes its last messages.
    async fn close(&self) {
        {
            let mut state = self.state();
            state.is_closing = true;
            state.sessions.values().for_each(|stream| stream.close());
        }
        if self.id.get().is_none() {
            return;
        }
        let headers = self.headers(None);
        let delete = self
            .endpoint
            .send(Method::DELETE, headers, Bytes::new(), CLOSING);
        // A server that does not receive it ends the connection by a timeout.
        let _ = delete.await;
        let mut tasks = std::mem::take(&mut *self.tasks());
        let _ = timeout(CLOSING, async {
            while tasks.join_next().await.is_some() {}
        })
        .await;
    }

    /// Returns the stream of a session, which is opened if it is not.
    fn stream(self: &Arc<Self>, session: &str) -> Option<Arc<Stream>> {
        if self.id.get().is_none() || session.is_empty() || HeaderValue::from_str(session).is_err()
        {
            return None;
        }
        let mut state = self.state();
        if let Some(stream) = state.sessions.get(session) {
            return Some(stream.clone());
        }
        let stream = Stream::new(Some(session.to_owned()));
        state.sessions.insert(session.to_owned(), stream.clone());
        drop(state);
        self.spawn(stream::run(self.clone(), stream.clone()));
        Some(stream)
    }

    /// Remembers a message of the suite. Returns its session.
    fn remember(&self, message: &Value) -> Option<String> {
        let session = message["params"]["sessionId"].as_str().map(str::to_owned);
        let mut state = self.state();
        match message.get("id").map(Value::to_string) {
            Some(id) if is_answer(message) => state.agent_requests.remove(&id),
            Some(id) if state.requests.len() < REQUESTS => {
                let method = message["method"].as_str().unwrap_or_default().to_owned();
                state.requests.insert(id, (method, session.clone()));
                session
            }
            _ => session,
        }
    }

    async fn post(self: &Arc<Self>, message: Vec<u8>, value: &Value) {
        let session = self.remember(value);
        let method = value["method"].as_str().unwrap_or_default();
        let opens = self.id.get().is_none();
        if let Some(stream) = session.as_deref().and_then(|session| self.stream(session)) {
            // The server may drop events of the session that precede its stream.
            stream.opened(OPENING).await;
        }
        let mut headers = self.headers(session.as_deref());
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert("accept", both);
        let json = HeaderValue::from_static("application/json");
        headers.insert("content-type", json);
        let message = Bytes::from(message);
        let sent = loop {
            let post = self
                .endpoint
                .send(Method::POST, headers.clone(), message.clone(), RESPONSE);
            let sent = post.await;
            let is_unknown =
                matches!(&sent, Ok(response) if response.status() == StatusCode::NOT_FOUND);
            // Some servers do not know the session until it is loaded.
            let joins = attachment(method) == Attachment::Joins;
            if !is_unknown || !joins || headers.remove("acp-session-id").is_none() {
                break sent;
            }
        };
        let what = match method {
            "" => "POST of a response".to_owned(),
            method => format!("POST {method}"),
        };
        let failed = |error: io::Error| format!("{what} failed: {error}");
        let response = match sent {
            Ok(response) => response,
            Err(error) => return self.fail(failed(error)),
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match body(response).await {
            Ok(body) => body,
            Err(error) => return self.fail(failed(error)),
        };
        let reply: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !status.is_success() {
            let reason = refusal(&what, status.as_u16(), &body);
            return self
                .refused(status, value, session.is_some(), reply, reason)
                .await;
        }
        if opens && !self.initialized(&headers) && reply.get("result").is_some() {
            let reason = "the response to initialize has no header Acp-Connection-Id";
            return self.fail(reason.to_owned());
        }
        if opens && let Some(stream) = self.open_stream() {
            // The server may drop a response that precedes the connection's stream.
            stream.opened(OPENING).await;
        }
        // The transport has bodies for `initialize` only; other answers are accepted leniently.
        if reply.get("method").is_some() || reply.get("id").is_some() {
            self.take(None, &body).await;
        }
    }

    /// Takes the id of the connection; whether there is one.
    fn initialized(&self, headers: &HeaderMap) -> bool {
        let Some(id) = headers.get("acp-connection-id") else {
            return false;
        };
        let mut named = HeaderMap::new();
        named.insert("acp-connection-id", id.clone());
        let cookies = headers.get_all("set-cookie").iter();
        let cookies = cookies.filter_map(|cookie| cookie.to_str().ok()?.split(';').next());
        let cookies: Vec<_> = cookies.map(str::trim).collect();
        if let Ok(cookies) = HeaderValue::from_str(&cookies.join("; "))
            && !cookies.is_empty()
        {
            named.insert("cookie", cookies);
        }
        // Another `initialize` does not open another connection.
        let _ = self.id.set(named);
        true
    }

    /// Opens the stream of the connection, unless it is open.
    fn open_stream(self: &Arc<Self>) -> Option<Arc<Stream>> {
        let mut state = self.state();
        if self.id.get().is_none() || state.connection.is_some() {
            return None;
        }
        let stream = Stream::new(None);
        state.connection = Some(stream.clone());
        drop(state);
        self.spawn(stream::run(self.clone(), stream.clone()));
        Some(stream)
    }

    /// Makes a refusal an answer: a status is the answer to a request that is not passed on to the
    /// agent.
    async fn refused(
        &self,
        status: StatusCode,
        message: &Value,
        has_session: bool,
        mut reply: Value,
        reason: String,
    ) {
        let is_streaming = {
            let state = self.state();
            state
                .connection
                .as_ref()
                .is_some_and(|stream| stream.is_open())
        };
        let is_over = match status.as_u16() {
            401 | 403 | 410 => true,
            // The session is unknown, if the connection is not.
            404 if self.id.get().is_some() => !has_session || !is_streaming,
            _ => false,
        };
        if is_over {
            return self.fail(reason);
        }
        let id = message.get("id").filter(|_| !is_answer(message));
        if let Some(id) = id {
            self.state().requests.remove(&id.to_string());
        }
        // Servers also answer with JSON that is not JSON-RPC.
        let is_answer = reply.get("jsonrpc").is_some()
            && (reply.get("error").is_some() || reply.get("result").is_some());
        if !is_answer {
            if self.id.get().is_none() {
                return self.fail(reason);
            }
            let code = match message {
                // What is not JSON is read as `null`.
                Value::Null => ErrorCode::PARSE_ERROR,
                Value::Object(_) if id.is_none() => return,
                _ => ErrorCode::INVALID_REQUEST,
            };
            let error = json!({"code": code, "message": reason});
            reply = json!({"jsonrpc": "2.0", "id": null, "error": error});
        }
        // The response to a POST is the answer to its request, whether or not it repeats the id.
        if let Some(id) = id {
            reply["id"] = id.clone();
        }
        self.incoming.pass(reply.to_string().as_bytes()).await;
    }

    /// Passes on a message that a stream, or the response to a POST, has brought.
    pub(super) async fn take(self: &Arc<Self>, from: Option<&str>, message: &[u8]) {
        let value: Value = serde_json::from_slice(message).unwrap_or_default();
        let id = value.get("id").map(Value::to_string);
        match id {
            Some(id) if value.get("method").is_some() => {
                let session = value["params"]["sessionId"].as_str().or(from);
                let mut state = self.state();
                if let Some(session) = session.filter(|_| state.agent_requests.len() < REQUESTS) {
                    state.agent_requests.insert(id, session.to_owned());
                }
            }
            Some(id) => {
                if let Some(stream) = self.answered(&id, &value).filter(|_| from.is_none()) {
                    let (connection, message) = (self.clone(), message.to_vec());
                    return self.spawn(async move {
                        let caught_up = async {
                            stream.opened(OPENING).await;
                            stream.caught_up().await;
                        };
                        // After the limit, an early answer is better than none.
                        let _ = timeout(REPLAY, caught_up).await;
                        connection.incoming.pass(&message).await;
                    });
                }
            }
            None => {}
        }
        self.incoming.pass(message).await;
    }

    /// Notes the answer to a request of the suite. Returns the stream whose replay precedes it.
    fn answered(self: &Arc<Self>, id: &str, answer: &Value) -> Option<Arc<Stream>> {
        let (method, session) = self.state().requests.remove(id)?;
        let result = answer.get("result")?;
        let known = |session: &str| self.state().sessions.get(session).cloned();
        match attachment(&method) {
            Attachment::Creates => {
                self.stream(result["sessionId"].as_str()?);
                None
            }
            Attachment::Joins => known(&session?),
            Attachment::Leaves => {
                known(&session?)?.leave();
                None
            }
            _ => None,
        }
    }
}

/// Returns whether a message of the suite is the answer to a request.
fn is_answer(message: &Value) -> bool {
    message.get("method").is_none() && message.get("id").is_some()
}

/// Reads the body of a response.
pub(super) async fn body(response: Response<Body>) -> io::Result<Bytes> {
    let mut incoming = response.into_body();
    let reading = async {
        let mut body = BytesMut::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(io::Error::other)?;
            body.extend_from_slice(&frame.into_data().unwrap_or_default());
            if body.len() > acp_sdk::limits::MAX_MESSAGE_BYTES {
                return Err(io::Error::other(
                    "the body of the response exceeds the limit",
                ));
            }
        }
        Ok(body.freeze())
    };
    match timeout(RESPONSE, reading).await {
        Ok(body) => body,
        Err(_) => Err(io::Error::other("the body of the response does not end")),
    }
}
