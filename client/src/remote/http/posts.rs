//! Sends messages of this client as POST requests.
//!
//! Messages are posted one at a time, in order. A server may hold a POST until it has a response to
//! a request of the agent, so responses overtake a message that is in flight longer than [`HELD`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acp_sdk::facts::Attachment;
use bytes::Bytes;
use futures_util::future::OptionFuture;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, StatusCode};
use tokio::time::{Instant, sleep_until};

use super::{CONNECTION_ID, Connection, Failure};
use crate::reconnect::Backoff;
use crate::reconnect::envelope::{self, Envelope, Kind};
use crate::reconnect::queue::Receiver;
use crate::remote::RemoteError;
use crate::remote::link::{Received, Refused};

/// What servers on `acp-server` call the refusal of a request whose connection has ended.
const UNKNOWN_CONNECTION: &str = "unknown_connection";

/// Capacity of the queue in bytes. At the limit, no more messages are taken from the application.
const WAITING_BYTES: usize = 4 << 20;

/// Timeout for opening a session's stream before a message of the session is posted.
const OPENING: Duration = Duration::from_secs(5);

/// Timeout for opening the connection's stream. Some servers answer only when there is an event.
const CONNECTING: Duration = Duration::from_secs(1);

/// Attempts to post a message while the server answers 429 or 503.
const BUSY_ATTEMPTS: u32 = 5;

/// The time in flight after which responses overtake a message.
const HELD: Duration = Duration::from_millis(500);

struct Post {
    number: u64,
    message: Bytes,
    kind: Kind,
}

/// Posts messages until the queue is closed and empty.
pub(super) async fn run(connection: &Arc<Connection>, mut outgoing: Receiver<Bytes>) {
    let mut queue = Queue::default();
    let mut is_open = true;
    let mut ordered = None;
    let mut answer = None;
    loop {
        if ordered.is_none()
            && let Some(post) = queue.next_ordered()
        {
            ordered = Some(Box::pin(connection.post(post)));
        }
        if answer.is_none()
            && let Some(post) = queue.next_answer(Instant::now())
        {
            answer = Some(Box::pin(connection.post(post)));
        }
        if !is_open && ordered.is_none() && answer.is_none() && queue.is_empty() {
            return;
        }
        tokio::select! {
            message = outgoing.receive(), if is_open && queue.bytes < WAITING_BYTES => {
                match message {
                    Some(message) => queue.push(message),
                    None => is_open = false,
                }
            }
            Some(()) = OptionFuture::from(ordered.as_mut()) => {
                ordered = None;
                queue.ordered_done();
            }
            Some(()) = OptionFuture::from(answer.as_mut()) => answer = None,
            Some(()) = OptionFuture::from(queue.held_at().map(sleep_until)), if answer.is_none() => {}
        }
    }
}

/// Messages that wait to be posted.
#[derive(Default)]
struct Queue {
    ordered: VecDeque<Post>,
    answers: VecDeque<Post>,
    /// The number of the ordered message in flight, and the start of its POST.
    in_flight: Option<(u64, Instant)>,
    pushed: u64,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, message: Bytes) {
        self.pushed += 1;
        self.bytes += message.len();
        let kind = Envelope::read(&message).kind();
        let post = Post {
            number: self.pushed,
            message,
            kind,
        };
        match kind {
            Kind::Answer => self.answers.push_back(post),
            _ => self.ordered.push_back(post),
        }
    }

    fn next_ordered(&mut self) -> Option<Post> {
        let post = self.ordered.pop_front()?;
        self.in_flight = Some((post.number, Instant::now()));
        self.bytes -= post.message.len();
        Some(post)
    }

    fn ordered_done(&mut self) {
        self.in_flight = None;
    }

    /// Returns the next response, unless an earlier message must be posted first.
    fn next_answer(&mut self, now: Instant) -> Option<Post> {
        let number = self.answers.front()?.number;
        let before = self.in_flight.filter(|(other, _)| *other < number);
        let is_held = before.is_some_and(|(_, since)| now >= since + HELD);
        let waiting = self
            .ordered
            .front()
            .is_some_and(|post| post.number < number);
        if (before.is_some() || waiting) && !is_held {
            return None;
        }
        let post = self.answers.pop_front()?;
        self.bytes -= post.message.len();
        Some(post)
    }

    /// Returns the time at which a waiting response overtakes the message in flight.
    fn held_at(&self) -> Option<Instant> {
        let (_, since) = self.in_flight.filter(|_| !self.answers.is_empty())?;
        Some(since + HELD)
    }

    fn is_empty(&self) -> bool {
        self.ordered.is_empty() && self.answers.is_empty()
    }
}

/// Returns a POST of a message.
pub(super) fn request(
    connection: &Connection,
    mut headers: HeaderMap,
    message: Bytes,
) -> RequestBuilder {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    connection
        .access
        .request(Method::POST, headers)
        .body(message)
}

impl Connection {
    /// Posts a message, with retries where they are safe, and reports a rejection.
    async fn post(self: &Arc<Self>, post: Post) {
        let envelope = Envelope::read(&post.message);
        let session = self.record_message(&envelope);
        let joins = envelope.method.as_deref().map(envelope::attachment);
        let stream = session.as_deref().and_then(|session| match joins {
            Some(Attachment::Leaves) => self.last_stream(session),
            _ => self.stream(session),
        });
        if let Some(stream) = stream {
            if envelope.method.as_deref() == Some("session/load") {
                stream.set_from_start();
            }
            // The server may drop events of the session that precede its stream.
            stream.opened(OPENING).await;
        } else if self.id.get().is_some() && !self.waited.swap(true, Ordering::AcqRel) {
            // The server may drop a response that precedes the connection's stream.
            let stream = self.state().connection.clone();
            if let Some(stream) = stream {
                stream.opened(CONNECTING).await;
            }
        }
        let method = envelope.method.as_deref();
        let what = match method {
            Some(method) => format!("POST {method}"),
            None => "POST of a response".to_owned(),
        };
        let mut headers = self.headers(session.as_deref());
        let opens = envelope.is_initialize() && self.id.get().is_none();
        let mut backoff = Backoff::new(self.reconnect.unwrap_or_default());
        let mut busy = 0;
        let failure = loop {
            let request = request(self, headers.clone(), post.message.clone());
            let failure = match self.send(request, &what).await {
                Ok(response) => match self.accepted(response, opens).await {
                    Ok(()) => return,
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            let wait = match &failure {
                // Only an established connection is opened again.
                Failure::NotSent(_) if self.reconnect.is_some() && !opens => {
                    backoff.next(Duration::ZERO)
                }
                // Servers ignore a duplicate response.
                Failure::NoResponse(_)
                    if self.reconnect.is_some()
                        && (post.kind == Kind::Answer || envelope.is_repeatable()) =>
                {
                    backoff.next(Duration::ZERO)
                }
                Failure::Status {
                    status: StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS,
                    retry_after,
                    ..
                } if self.reconnect.is_some() && busy < BUSY_ATTEMPTS => {
                    busy += 1;
                    backoff.next(*retry_after)
                }
                // Some servers do not know the session until it is loaded.
                Failure::Status {
                    status: StatusCode::NOT_FOUND,
                    ..
                } if joins == Some(Attachment::Joins)
                    && headers.remove(super::SESSION_ID).is_some() =>
                {
                    Some(Duration::ZERO)
                }
                _ => None,
            };
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => break failure,
            }
        };
        let named = session.is_some();
        self.not_accepted(&post, &envelope, failure, &what, (opens, named))
            .await;
    }

    /// Reads the response to an accepted message.
    async fn accepted(
        self: &Arc<Self>,
        response: reqwest::Response,
        opens: bool,
    ) -> Result<(), Failure> {
        let id = response.headers().get(CONNECTION_ID).cloned();
        let body = self.access.body(response).await?;
        if opens {
            if let Some(id) = id {
                self.initialized(id, &body);
            } else if Envelope::read(&body).error.is_none() {
                self.end.fail(RemoteError::Protocol {
                    url: self.access.url(),
                    reason: "its response to initialize has no header Acp-Connection-Id".to_owned(),
                });
                return Ok(());
            }
        }
        // The transport allows this for `initialize` only; other responses are accepted leniently.
        if !body.trim_ascii().is_empty() && Envelope::read(&body).kind() != Kind::Other {
            self.take(None, body).await;
        }
        Ok(())
    }

    async fn not_accepted(
        &self,
        post: &Post,
        envelope: &Envelope<'_>,
        failure: Failure,
        what: &str,
        (opens, named): (bool, bool),
    ) {
        let error = self.access.error(&failure, what);
        let has_id = self.id.get().is_some();
        let (body, is_uncertain) = match failure {
            Failure::Status { status, body, .. } => match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => {
                    return self.end.fail(error);
                }
                // The 404 concerns the session only while the connection's stream is open, unless the server
                // says what it means.
                StatusCode::NOT_FOUND
                    if has_id && (!(named && self.is_streaming()) || names_connection(&body)) =>
                {
                    return self.fail_unknown();
                }
                _ => (Some(body), false),
            },
            Failure::NotSent(_) => return self.end.fail(self.reconnect_timeout(error)),
            Failure::NoResponse(_) if opens || self.reconnect.is_none() => {
                return self.end.fail(error);
            }
            Failure::NoResponse(_) => (None, true),
        };
        let body = body.filter(|body| {
            let envelope = Envelope::read(body);
            // Servers also answer with JSON that is not JSON-RPC.
            envelope.is_json_rpc() && (envelope.error.is_some() || envelope.result.is_some())
        });
        if opens && body.is_none() {
            return self.end.fail(error);
        }
        let request = match post.kind {
            Kind::Request => envelope.id().map(str::to_owned),
            _ => None,
        };
        if let (Some(id), false) = (&request, is_uncertain) {
            self.state().refused(id);
        }
        let refused = Refused {
            request,
            error,
            body,
            is_uncertain,
        };
        // The receiver may have been dropped.
        let _ = self.incoming.send(Received::Refused(refused)).await;
    }

    /// Returns [`RemoteError::ReconnectTimeout`] for the last error of an established connection.
    pub(super) fn reconnect_timeout(&self, error: RemoteError) -> RemoteError {
        match (self.reconnect, &error) {
            (
                Some(reconnect),
                RemoteError::Connect { url, reason } | RemoteError::Lost { url, reason },
            ) if self.id.get().is_some() => RemoteError::ReconnectTimeout {
                url: url.clone(),
                limit: reconnect.limit,
                reason: reason.clone(),
            },
            _ => error,
        }
    }
}

/// Returns whether the body of a refusal says that the server does not know the connection.
fn names_connection(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Refusal<'a> {
        error: &'a str,
    }
    serde_json::from_slice(body)
        .is_ok_and(|refusal: Refusal<'_>| refusal.error == UNKNOWN_CONNECTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, text: &'static str) {
        queue.push(Bytes::from_static(text.as_bytes()));
    }

    fn numbers(post: Option<Post>) -> Option<u64> {
        post.map(|post| post.number)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_what_was_sent_before_but_not_for_ever() {
        let mut queue = Queue::default();
        push(&mut queue, r#"{"id":0,"method":"session/prompt"}"#);
        push(&mut queue, r#"{"method":"session/cancel"}"#);
        push(&mut queue, r#"{"id":1,"result":{}}"#);
        push(&mut queue, r#"{"id":2,"method":"session/list"}"#);
        let now = Instant::now();
        assert_eq!(numbers(queue.next_answer(now)), None);
        assert_eq!(numbers(queue.next_ordered()), Some(1));
        assert_eq!(numbers(queue.next_answer(now)), None);
        queue.ordered_done();
        assert_eq!(numbers(queue.next_ordered()), Some(2));
        assert_eq!(numbers(queue.next_answer(now)), None);
        queue.ordered_done();
        assert_eq!(
            numbers(queue.next_answer(now)),
            Some(3),
            "the list comes later"
        );

        assert_eq!(numbers(queue.next_ordered()), Some(4));
        push(&mut queue, r#"{"id":3,"result":{}}"#);
        assert_eq!(queue.held_at(), Some(now + HELD));
        assert_eq!(numbers(queue.next_answer(now)), None);
        assert_eq!(numbers(queue.next_answer(now + HELD)), Some(5));
        assert!(queue.is_empty() && queue.bytes == 0);
    }
}
