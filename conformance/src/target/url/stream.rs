//! The event stream of a connection or a session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use tokio::sync::watch;
use tokio::time::timeout;

use super::http::{Connection, body};
use super::{RESPONSE, refusal};
use crate::transport::{EventParser, Item};

/// How long nothing comes on a stream that has caught up.
const IDLE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    /// The server does not know the session yet, or not any more.
    Refused,
    /// Nobody opens it any more.
    Closed,
}

/// A stream of events.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) session: Option<String>,
    state: watch::Sender<State>,
    /// How many pieces of bytes have come.
    pieces: AtomicU64,
    /// The session was closed or deleted, so that the server may end the stream.
    is_left: AtomicBool,
}

impl Stream {
    pub(super) fn new(session: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            session,
            state: watch::Sender::new(State::Opening),
            pieces: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        *self.state.borrow() == State::Open
    }

    /// Waits until it is open or refused, for as long as this. One that was refused is opened again.
    pub(super) async fn opened(&self, limit: Duration) {
        self.state.send_if_modified(|state| {
            let was_refused = *state == State::Refused;
            if was_refused {
                *state = State::Opening;
            }
            was_refused
        });
        let mut state = self.state.subscribe();
        // After the limit, the server decides whether messages are lost.
        let _ = timeout(limit, state.wait_for(|state| *state != State::Opening)).await;
    }

    /// Waits until nothing has come for a while. The caller limits it: a session whose agent goes on working never
    /// catches up.
    pub(super) async fn caught_up(&self) {
        loop {
            let before = self.pieces.load(Ordering::Acquire);
            tokio::time::sleep(IDLE).await;
            if self.pieces.load(Ordering::Acquire) == before {
                return;
            }
        }
    }

    /// Ends one that is not open.
    pub(super) fn close(&self) {
        self.state.send_if_modified(|state| {
            let was_refused = *state == State::Refused;
            if was_refused {
                *state = State::Closed;
            }
            was_refused
        });
    }

    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    fn name(&self) -> String {
        match &self.session {
            Some(session) => format!("the stream of the session {session}"),
            None => "the stream of the connection".to_owned(),
        }
    }
}

/// Reads a stream to its end; opens that of a session again when it is asked for.
pub(super) async fn run(connection: Arc<Connection>, stream: Arc<Stream>) {
    loop {
        let ended = match open(&connection, &stream).await {
            Ok(events) => {
                stream.is_left.store(false, Ordering::Release);
                stream.state.send_replace(State::Open);
                let ended = read(&connection, &stream, events).await;
                let reason = ended
                    .err()
                    .unwrap_or_else(|| "the server ended it".to_owned());
                Err(format!("{} was lost: {reason}", stream.name()))
            }
            Err(refused) => refused,
        };
        match ended {
            // Another message of the session asks for it.
            Ok(()) => {}
            Err(_) if stream.is_left.load(Ordering::Acquire) => {}
            Err(reason) => return connection.fail(reason),
        }
        stream.state.send_replace(State::Refused);
        if connection.is_closing() {
            return;
        }
        let mut state = stream.state.subscribe();
        match state.wait_for(|state| *state != State::Refused).await {
            Ok(state) if *state == State::Opening => {}
            _ => return,
        }
    }
}

/// Opens a stream. Fails with `Ok` if the server does not have it.
async fn open(connection: &Connection, stream: &Stream) -> Result<Incoming, Result<(), String>> {
    let mut headers = connection.headers(stream.session.as_deref());
    headers.insert("accept", HeaderValue::from_static("text/event-stream"));
    let sent = connection
        .endpoint
        .send(Method::GET, headers, Bytes::new(), RESPONSE);
    let response = sent.await;
    let response =
        response.map_err(|error| Err(format!("cannot open {}: {error}", stream.name())))?;
    let status = response.status();
    if !status.is_success() {
        let body = body(response).await.unwrap_or_default();
        return match (status.as_u16(), &stream.session) {
            (401 | 410, _) | (_, None) => Err(Err(refusal(&stream.name(), status.as_u16(), &body))),
            // Servers that have no streams of sessions send everything on that of the connection.
            _ => Err(Ok(())),
        };
    }
    let content = response.headers().get("content-type");
    let content = content.and_then(|content| content.to_str().ok());
    if !content.is_some_and(|content| content.trim_start().starts_with("text/event-stream")) {
        let name = stream.name();
        return Err(Err(format!(
            "expected text/event-stream for {name}, got {content:?}"
        )));
    }
    Ok(response.into_body())
}

async fn read(
    connection: &Arc<Connection>,
    stream: &Stream,
    mut events: Incoming,
) -> Result<(), String> {
    let (mut parser, mut items) = (EventParser::default(), VecDeque::new());
    while let Some(frame) = events.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        stream.pieces.fetch_add(1, Ordering::AcqRel);
        parser.push(&frame.into_data().unwrap_or_default(), &mut items)?;
        for item in items.drain(..) {
            if let Item::Event { data, .. } = item {
                connection
                    .take(stream.session.as_deref(), data.as_bytes())
                    .await;
            }
        }
    }
    Ok(())
}
