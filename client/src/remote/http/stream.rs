//! One event stream: opens it, reads it and reopens it after its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::access::reason;
use super::{Connection, Failure, LAST_EVENT_ID};
use crate::reconnect::Backoff;
use crate::remote::RemoteError;
use crate::remote::sse::{Decoder, Item};

/// The longest `retry` interval of a server that is honoured.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamState {
    Opening,
    Open,
    /// The server does not know the session (yet).
    Unknown,
    /// The server does not support this stream.
    Unsupported,
}

/// The stream of the connection, or of a session.
pub(super) struct Stream {
    session: Option<String>,
    state: watch::Sender<StreamState>,
    again: Notify,
    closed: CancellationToken,
    /// The number of received probe responses.
    probes: watch::Sender<u64>,
    /// The number of received chunks of bytes.
    pieces: AtomicU64,
    was_open: AtomicBool,
    /// The session was closed or deleted.
    detached: AtomicBool,
    /// All events from number 0 on belong to this client.
    from_start: AtomicBool,
}

impl Stream {
    pub(super) fn new(session: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            session,
            state: watch::Sender::new(StreamState::Opening),
            again: Notify::new(),
            closed: CancellationToken::new(),
            probes: watch::Sender::new(0),
            pieces: AtomicU64::new(0),
            was_open: AtomicBool::new(false),
            detached: AtomicBool::new(false),
            from_start: AtomicBool::new(false),
        })
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub(super) fn is_open(&self) -> bool {
        *self.state.borrow() == StreamState::Open
    }

    /// Waits up to `limit` until opening has succeeded or failed. Retries after a failure.
    pub(super) async fn opened(&self, limit: Duration) {
        if self.was_open.load(Ordering::Acquire) {
            return;
        }
        self.retry();
        let mut state = self.state.subscribe();
        // After the limit, the server decides whether messages are lost.
        let _ = timeout(
            limit,
            state.wait_for(|state| *state != StreamState::Opening),
        )
        .await;
    }

    /// Tries again to open a stream that the server has rejected.
    pub(super) fn retry(&self) {
        let was_unknown = self.state.send_if_modified(|state| {
            let was_unknown = *state == StreamState::Unknown;
            if was_unknown {
                *state = StreamState::Opening;
            }
            was_unknown
        });
        if was_unknown {
            self.again.notify_one();
        }
    }

    /// Marks all events of the session as the client's, as after `session/new`.
    pub(super) fn set_from_start(&self) {
        self.from_start.store(true, Ordering::Release);
    }

    /// Marks the session as detached; the stream is closed once no response is pending on it.
    pub(super) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
    }

    pub(super) fn is_detached(&self) -> bool {
        self.detached.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Records a probe response.
    pub(super) fn probed(&self) {
        self.probes.send_modify(|probes| *probes += 1);
    }

    /// Waits for the next probe response after the call.
    pub(super) fn next_probe(&self) -> impl Future<Output = ()> + use<> {
        let mut probes = self.probes.subscribe();
        async move {
            // The stream holds the sender, so this cannot fail.
            let _ = probes.changed().await;
        }
    }

    /// Waits until nothing was received for `time`.
    pub(super) async fn idle_for(&self, time: Duration) {
        loop {
            let before = self.pieces.load(Ordering::Acquire);
            tokio::time::sleep(time).await;
            if self.pieces.load(Ordering::Acquire) == before {
                return;
            }
        }
    }

    fn set_state(&self, state: StreamState) {
        self.was_open
            .fetch_or(state == StreamState::Open, Ordering::AcqRel);
        self.state.send_replace(state);
    }
}

/// Keeps a stream open until the connection ends.
pub(super) async fn run(connection: Arc<Connection>, stream: Arc<Stream>) {
    tokio::select! {
        () = keep_open(&connection, &stream) => {}
        () = stream.closed.cancelled() => {}
        () = connection.end.now.cancelled() => {}
    }
    stream.set_state(StreamState::Unsupported);
}

/// The reaction to the end of a stream, or to a failure to open it.
enum Reaction {
    /// Open it again after at least this time.
    Reopen(RemoteError, Duration),
    /// Wait for a request to open it.
    Wait,
    /// Do not open it any more.
    Never,
    Fail(RemoteError),
    /// Fail the connection: the server does not know it any more.
    Unknown,
}

async fn keep_open(connection: &Arc<Connection>, stream: &Stream) {
    let mut position = Position::default();
    let mut backoff = Backoff::new(connection.reconnect.unwrap_or_default());
    loop {
        // Events that the server sent to a lost reader are replayed from event 0.
        let starts = stream.session.is_none() || stream.from_start.load(Ordering::Acquire);
        if position.had_reader && position.cursor.is_none() && starts && connection.has_event_ids()
        {
            position.cursor = Some(HeaderValue::from_static("0"));
        }
        position.had_reader = true;
        let reaction = match open(connection, stream, &position).await {
            Ok(response) => {
                stream.set_state(StreamState::Open);
                backoff.opened();
                let before = position.events;
                let error = read(connection, stream, response, &mut position).await;
                stream.set_state(StreamState::Opening);
                if position.events > before {
                    backoff.reset();
                }
                match error {
                    Some(error) => Reaction::Reopen(error, Duration::ZERO),
                    None => return,
                }
            }
            Err(failure) => reaction_to(connection, stream, failure),
        };
        if connection.closing.is_cancelled() {
            return;
        }
        match reaction {
            // The next message of the session opens it again.
            Reaction::Reopen(RemoteError::Refused { .. }, _)
                if connection.reconnect.is_none() && stream.session.is_some() =>
            {
                stream.set_state(StreamState::Unknown);
                if is_closed_before(connection, stream.again.notified()).await {
                    return;
                }
            }
            Reaction::Reopen(error, least) => {
                if connection.reconnect.is_none() {
                    return connection.end.fail(error);
                }
                let Some(wait) = backoff.next(least.max(position.retry)) else {
                    return connection.end.fail(connection.reconnect_timeout(error));
                };
                if is_closed_before(connection, tokio::time::sleep(wait)).await {
                    return;
                }
            }
            Reaction::Wait => {
                stream.set_state(StreamState::Unknown);
                if is_closed_before(connection, stream.again.notified()).await {
                    return;
                }
                backoff.reset();
            }
            Reaction::Never => return stream.set_state(StreamState::Unsupported),
            Reaction::Fail(error) => return connection.end.fail(error),
            Reaction::Unknown => return connection.fail_unknown(),
        }
    }
}

/// Waits for an event. Returns whether the client has closed the connection before.
async fn is_closed_before(connection: &Connection, event: impl Future<Output = ()>) -> bool {
    tokio::select! {
        () = event => false,
        () = connection.closing.cancelled() => true,
    }
}

/// State that a reader of the stream passes on to the next.
#[derive(Default)]
struct Position {
    cursor: Option<HeaderValue>,
    retry: Duration,
    events: u64,
    /// Whether the server may have sent events to an earlier reader.
    had_reader: bool,
}

async fn open(
    connection: &Connection,
    stream: &Stream,
    position: &Position,
) -> Result<Response, Failure> {
    let mut headers = connection.headers(stream.session());
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(cursor) = &position.cursor {
        headers.insert(LAST_EVENT_ID, cursor.clone());
    }
    let request = connection.access.request(Method::GET, headers);
    connection.send(request, "GET").await
}

/// Returns the reaction to a stream that could not be opened.
fn reaction_to(connection: &Connection, stream: &Stream, failure: Failure) -> Reaction {
    let error = connection.access.error(&failure, "GET");
    let Failure::Status {
        status,
        retry_after,
        ..
    } = failure
    else {
        return Reaction::Reopen(error, Duration::ZERO);
    };
    let is_session = stream.session.is_some();
    match status {
        StatusCode::NOT_FOUND if !is_session => Reaction::Unknown,
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN if is_session => Reaction::Wait,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => {
            Reaction::Fail(error)
        }
        // The server still has another reader of the stream, or no capacity.
        _ if error.is_temporary() => Reaction::Reopen(error, retry_after),
        _ if is_session => Reaction::Never,
        _ => Reaction::Fail(error),
    }
}

/// Reads a stream to its end and returns the reason; `None` when the receiver was dropped.
async fn read(
    connection: &Arc<Connection>,
    stream: &Stream,
    mut response: Response,
    position: &mut Position,
) -> Option<RemoteError> {
    let lost = |reason: String| {
        let url = connection.access.url();
        Some(RemoteError::Lost { url, reason })
    };
    let content = response.headers().get(CONTENT_TYPE);
    let content = content.and_then(|content| content.to_str().ok());
    if !content.is_some_and(|content| content.trim_start().starts_with("text/event-stream")) {
        let reason = format!("expected a stream of text/event-stream, got {content:?}");
        connection.end.fail(RemoteError::Protocol {
            url: connection.access.url(),
            reason,
        });
        return None;
    }
    let limits = connection.access.limits;
    let mut decoder = Decoder::new(limits.message_bytes);
    let mut items = Vec::new();
    // Servers without keep-alives may be idle.
    let mut has_keep_alive = false;
    loop {
        let piece = response.chunk();
        let piece = match has_keep_alive {
            true => match timeout(limits.idle, piece).await {
                Ok(piece) => piece,
                Err(_) => {
                    return lost(format!("no keep-alive for {} s", limits.idle.as_secs_f32()));
                }
            },
            false => piece.await,
        };
        let piece = match piece {
            Ok(Some(piece)) => piece,
            Ok(None) => return lost("the server ended a stream".to_owned()),
            Err(error) => return lost(reason(error)),
        };
        stream.pieces.fetch_add(1, Ordering::AcqRel);
        if connection.end.has_trouble() {
            connection.end.set_trouble(None);
        }
        let decoded = decoder.feed(&piece, &mut items);
        for item in items.drain(..) {
            match item {
                Item::Comment => has_keep_alive = true,
                Item::Retry(wait) => position.retry = wait.min(LONGEST_RETRY),
                Item::Event { data, id } => {
                    position.events += 1;
                    if !data.trim_ascii().is_empty()
                        && !connection.take(stream.session(), Bytes::from(data)).await
                    {
                        return None;
                    }
                    // Set after forwarding: events that were not forwarded are sent again.
                    if let Some(id) = id {
                        let id = HeaderValue::from_str(&id).ok();
                        position.cursor = id.filter(|id| !id.is_empty());
                    }
                }
            }
        }
        if decoded.is_err() {
            let limit = limits.message_bytes;
            connection.end.fail(RemoteError::Protocol {
                url: connection.access.url(),
                reason: format!("an event exceeds {limit} bytes"),
            });
            return None;
        }
    }
}
