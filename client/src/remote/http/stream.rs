//! One event stream: opened, read, and opened again where it ended.

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

/// The longest wait that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// How a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Opening,
    Open,
    /// The server does not know the session, or not yet.
    Unknown,
    /// The server has no such streams.
    Unsupported,
}

/// The stream of the connection, or of a session.
pub(super) struct Stream {
    session: Option<String>,
    standing: watch::Sender<Standing>,
    again: Notify,
    closed: CancellationToken,
    /// Counts answers to probes.
    probes: watch::Sender<u64>,
    /// Counts pieces that came.
    pieces: AtomicU64,
    was_open: AtomicBool,
    /// The session has ended for this connection.
    left: AtomicBool,
    /// Everything from event 0 on belongs to this client.
    from_start: AtomicBool,
}

impl Stream {
    pub(super) fn new(session: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            session,
            standing: watch::Sender::new(Standing::Opening),
            again: Notify::new(),
            closed: CancellationToken::new(),
            probes: watch::Sender::new(0),
            pieces: AtomicU64::new(0),
            was_open: AtomicBool::new(false),
            left: AtomicBool::new(false),
            from_start: AtomicBool::new(false),
        })
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub(super) fn is_open(&self) -> bool {
        *self.standing.borrow() == Standing::Open
    }

    /// Waits until the stream was opened once, or was refused. One that was refused is tried again.
    pub(super) async fn opened(&self, limit: Duration) {
        if self.was_open.load(Ordering::Acquire) {
            return;
        }
        self.retry();
        let mut standing = self.standing.subscribe();
        // It is the server that decides whether messages are lost now.
        let _ = timeout(
            limit,
            standing.wait_for(|standing| *standing != Standing::Opening),
        )
        .await;
    }

    /// Tries to open a stream again that was refused.
    pub(super) fn retry(&self) {
        let was_unknown = self.standing.send_if_modified(|standing| {
            let was_unknown = *standing == Standing::Unknown;
            if was_unknown {
                *standing = Standing::Opening;
            }
            was_unknown
        });
        if was_unknown {
            self.again.notify_one();
        }
    }

    /// The session's events are the client's from the first one on, as after `session/new`.
    pub(super) fn starts(&self) {
        self.from_start.store(true, Ordering::Release);
    }

    /// The session has ended; the stream is closed once nothing more is expected on it.
    pub(super) fn leave(&self) {
        self.left.store(true, Ordering::Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// The answer to a probe has come.
    pub(super) fn probed(&self) {
        self.probes.send_modify(|probes| *probes += 1);
    }

    /// Waits for the next answer to a probe, from the call on.
    pub(super) fn next_probe(&self) -> impl Future<Output = ()> + use<> {
        let mut probes = self.probes.subscribe();
        async move {
            // The sender lives as long as the stream.
            let _ = probes.changed().await;
        }
    }

    /// Waits until nothing has come for a while.
    pub(super) async fn silent_for(&self, time: Duration) {
        loop {
            let before = self.pieces.load(Ordering::Acquire);
            tokio::time::sleep(time).await;
            if self.pieces.load(Ordering::Acquire) == before {
                return;
            }
        }
    }

    fn stand(&self, standing: Standing) {
        self.was_open
            .fetch_or(standing == Standing::Open, Ordering::AcqRel);
        self.standing.send_replace(standing);
    }
}

/// Keeps a stream open until the connection ends.
pub(super) async fn run(connection: Arc<Connection>, stream: Arc<Stream>) {
    tokio::select! {
        () = keep_open(&connection, &stream) => {}
        () = stream.closed.cancelled() => {}
        () = connection.end.now.cancelled() => {}
    }
    stream.stand(Standing::Unsupported);
}

/// What is to be done after a stream has ended, or could not be opened.
enum Then {
    /// It is opened again.
    Again(RemoteError, Duration),
    /// It waits to be asked for.
    Wait,
    /// There will be none.
    Never,
    Fail(RemoteError),
    /// The connection is gone.
    Gone,
}

async fn keep_open(connection: &Arc<Connection>, stream: &Stream) {
    let mut position = Position::default();
    let mut backoff = Backoff::new(connection.reconnect.unwrap_or_default());
    loop {
        // What a first reader was sent and has not got was written all the same.
        let starts = stream.session.is_none() || stream.from_start.load(Ordering::Acquire);
        if position.was_tried && position.cursor.is_none() && starts && connection.has_event_ids() {
            position.cursor = Some(HeaderValue::from_static("0"));
        }
        position.was_tried = true;
        let then = match open(connection, stream, &position).await {
            Ok(response) => {
                stream.stand(Standing::Open);
                let before = position.events;
                let error = read(connection, stream, response, &mut position).await;
                stream.stand(Standing::Opening);
                if position.events > before {
                    backoff.reset();
                }
                match error {
                    Some(error) => Then::Again(error, Duration::ZERO),
                    None => return,
                }
            }
            Err(failure) => judge(connection, stream, failure),
        };
        match then {
            // The next message of the session asks for it again.
            Then::Again(RemoteError::Refused { .. }, _)
                if connection.reconnect.is_none() && stream.session.is_some() =>
            {
                stream.stand(Standing::Unknown);
                stream.again.notified().await;
            }
            Then::Again(error, least) => {
                if connection.reconnect.is_none() {
                    return connection.end.fail(error);
                }
                match backoff.next(least.max(position.retry)) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return connection.end.fail(connection.gave_up(error)),
                }
            }
            Then::Wait => {
                stream.stand(Standing::Unknown);
                stream.again.notified().await;
                backoff.reset();
            }
            Then::Never => return stream.stand(Standing::Unsupported),
            Then::Fail(error) => return connection.end.fail(error),
            Then::Gone => return connection.gone(),
        }
    }
}

/// What is remembered from one reader of a stream to the next.
#[derive(Default)]
struct Position {
    cursor: Option<HeaderValue>,
    retry: Duration,
    events: u64,
    /// The server may have taken a reader for one that reads.
    was_tried: bool,
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
    connection.access.send(request).await
}

/// Decides what to do about a stream that could not be opened.
fn judge(connection: &Connection, stream: &Stream, failure: Failure) -> Then {
    let error = connection.access.error(&failure, "GET");
    let Failure::Status {
        status,
        retry_after,
        ..
    } = failure
    else {
        return Then::Again(error, Duration::ZERO);
    };
    let is_session = stream.session.is_some();
    match status {
        StatusCode::NOT_FOUND if !is_session => Then::Gone,
        StatusCode::NOT_FOUND | StatusCode::FORBIDDEN if is_session => Then::Wait,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => Then::Fail(error),
        // Another reader is taken for alive, or there is no room.
        _ if error.is_temporary() => Then::Again(error, retry_after),
        _ if is_session => Then::Never,
        _ => Then::Fail(error),
    }
}

/// Reads a stream to its end, and returns why it ended; `None` when nobody receives any more.
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
        let reason = format!("its stream has the type {content:?}, not text/event-stream");
        connection.end.fail(RemoteError::Protocol {
            url: connection.access.url(),
            reason,
        });
        return None;
    }
    let limits = connection.access.limits;
    let mut decoder = Decoder::new(limits.message_bytes);
    let mut items = Vec::new();
    // Servers that never send a sign of life may be silent.
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
                    // After it was passed on: what was not is sent again.
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
                reason: format!("an event is longer than {limit} bytes"),
            });
            return None;
        }
    }
}
