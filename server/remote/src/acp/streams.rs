//! The streams of one connection, and which message goes to which.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use acp_server::internal::connection::{Gate, RESTARTED, Subscription};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::envelope::{self, Outgoing};
use super::position::Position;
use super::stream::{Stream, Taken};
use crate::EndpointSettings;

/// The stream of answers and messages without a session, or that of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Connection,
    Session(Box<str>),
}

/// The streams of a connection.
///
/// A session whose stream nobody reads, or whose reader is slow, is held back: its events stay in
/// its log. So only requests and answers wait here without a reader.
pub(super) struct Streams {
    state: Mutex<StreamsState>,
    settings: EndpointSettings,
}

struct StreamsState {
    connection: Stream,
    sessions: HashMap<Box<str>, Session>,
    /// Where the answers to the client's requests go, by id as JSON.
    routes: HashMap<Box<str>, Route>,
    closed: bool,
    /// When the connection was last used, unless a stream is open.
    used: Instant,
}

#[derive(Default)]
struct Session {
    stream: Stream,
    /// Dead until the client is attached.
    subscription: Option<Weak<Subscription>>,
    /// Its messages go to the connection stream until it has a reader, for clients that open the
    /// stream of a session only when they are sent something of it.
    redirected: bool,
}

enum Route {
    /// In the body of the response to the POST.
    Body(oneshot::Sender<Bytes>),
    Connection,
    Session {
        id: Box<str>,
        /// The client was attached to the session when it asked.
        was_used: bool,
    },
}

impl Streams {
    pub(super) fn new(settings: EndpointSettings) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(StreamsState {
                connection: Stream::default(),
                sessions: HashMap::new(),
                routes: HashMap::new(),
                closed: false,
                used: Instant::now(),
            }),
            settings,
        })
    }

    /// Expects the answer to `initialize`.
    pub(super) fn expect_initialize(&self, request: &str) -> oneshot::Receiver<Bytes> {
        let (sender, receiver) = oneshot::channel();
        self.state()
            .routes
            .insert(request.into(), Route::Body(sender));
        receiver
    }

    /// Expects the answer to a request that is about to be passed on; `false` if too many are
    /// expected.
    pub(super) fn expect(&self, request: &str, method: &str, session: Option<&str>) -> bool {
        let mut state = self.state();
        state.used = Instant::now();
        if state.routes.len() >= self.settings.requests {
            return false;
        }
        let route = match session {
            Some(session) if !envelope::joins_session(method) => Route::Session {
                was_used: state.sessions.get(session).is_some_and(Session::is_used),
                id: session.into(),
            },
            _ => Route::Connection,
        };
        state.routes.insert(request.into(), route);
        true
    }

    /// Sends a session's messages on the connection stream until it has a reader.
    pub(super) fn redirect(&self, session: &str) {
        let mut state = self.state();
        if let Some(entry) = state.session(session, self.settings.streams)
            && !entry.stream.is_open()
        {
            entry.redirected = true;
        }
        state.pace(session, &self.settings);
    }

    /// The client has answered a request of the agent.
    pub(super) fn answered(&self, request: &str) {
        let mut state = self.state();
        state.used = Instant::now();
        state.connection.answered(request);
        for session in state.sessions.values_mut() {
            session.stream.answered(request);
        }
    }

    /// Routes a message of the agent.
    ///
    /// # Errors
    ///
    /// When too much waits for readers: the connection must end.
    pub(super) fn route(&self, message: Bytes) -> io::Result<()> {
        let outgoing = Outgoing::parse(&message);
        let mut state = self.state();
        let session = outgoing.params.session.as_deref();
        let grew = match outgoing.method.as_deref() {
            Some(RESTARTED) => {
                if let Some(session) = session.and_then(|id| state.sessions.get_mut(id)) {
                    session.stream.restarted(outgoing.params.generation);
                }
                return Ok(());
            }
            Some(_) => {
                let request = outgoing.id.map(|id| id.get().into());
                let event = outgoing.event();
                state.push(session, message.clone(), event, request, &self.settings)
            }
            None => {
                let id = outgoing.id.map(|id| id.get()).unwrap_or_default();
                match state.routes.remove(id) {
                    Some(Route::Body(sender)) => {
                        // Whoever asked may have gone.
                        let _ = sender.send(message.clone());
                        false
                    }
                    Some(Route::Session { id, was_used }) => {
                        state.release(&id);
                        let own = state.sessions.get(&id);
                        let own = own.is_some_and(|own| own.takes_answer(was_used));
                        let own = own.then_some(&*id);
                        state.push(own, message.clone(), None, None, &self.settings)
                    }
                    _ => state.push(None, message.clone(), None, None, &self.settings),
                }
            }
        };
        // All streams are looked through only when more waits than before: most messages are events.
        if grew && state.waiting_bytes() > self.settings.waiting_bytes {
            let reason = "the client does not read its streams";
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        Ok(())
    }

    /// Opens a stream for a reader; `None` if the connection has ended or has too many streams.
    pub(super) fn open(&self, name: &Name, cursor: Option<Position>) -> Option<u64> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let reader = match name {
            Name::Connection => {
                let reader = state.connection.open(cursor, |_| None);
                let redirected: Vec<_> = state.redirected().collect();
                for session in redirected {
                    state.pace(&session, &self.settings);
                }
                reader
            }
            Name::Session(id) => {
                let session = state.session(id, self.settings.streams)?;
                session.redirected = false;
                let subscription = session.subscription.as_ref().and_then(Weak::upgrade);
                let reader = session
                    .stream
                    .open(cursor, |after| Some(subscription?.send_again(after)));
                state.pace(id, &self.settings);
                reader
            }
        };
        Some(reader)
    }

    /// A reader has gone.
    pub(super) fn close_reader(&self, name: &Name, reader: u64) {
        let mut state = self.state();
        state.used = Instant::now();
        match name {
            Name::Connection => state.connection.close(reader),
            Name::Session(id) => {
                if let Some(session) = state.sessions.get_mut(id) {
                    session.stream.close(reader);
                }
                state.release(id);
                state.pace(id, &self.settings);
            }
        }
    }

    /// Takes the next message for a reader.
    pub(super) fn take(&self, name: &Name, reader: u64, waker: &Waker) -> Taken {
        let mut state = self.state();
        let keep = self.settings.waiting_bytes;
        let taken = match name {
            Name::Connection => state.connection.take(reader, waker, keep),
            Name::Session(id) => {
                let session = state.sessions.get_mut(id);
                let taken = session.map(|session| session.stream.take(reader, waker, keep));
                state.pace(id, &self.settings);
                taken.unwrap_or(Taken::End)
            }
        };
        match taken {
            Taken::Nothing if state.closed => Taken::End,
            taken => taken,
        }
    }

    /// Nothing more is sent: readers end when they have read the rest.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.routes.clear();
        state.connection.wake();
        for session in state.sessions.values_mut() {
            session.stream.wake();
        }
    }

    /// Returns for how long nobody has used the connection.
    pub(super) fn unused_for(&self) -> Duration {
        let state = self.state();
        let sessions = state.sessions.values();
        let mut streams = sessions.map(|session| &session.stream);
        if state.connection.is_open() || streams.any(Stream::is_open) {
            return Duration::ZERO;
        }
        state.used.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamsState {
    /// Returns a session, known or not; `None` if there are too many.
    fn session(&mut self, id: &str, limit: usize) -> Option<&mut Session> {
        // In this order the usual case, a known session, needs no copy of the id.
        if self.sessions.contains_key(id) {
            return self.sessions.get_mut(id);
        }
        if self.sessions.len() >= limit {
            // Sessions that nobody reads or uses make room.
            self.sessions.retain(|_, session| {
                session.stream.is_open() || session.stream.queued_bytes() > 0 || session.is_used()
            });
            if self.sessions.len() >= limit {
                return None;
            }
        }
        Some(self.sessions.entry(id.into()).or_default())
    }

    /// Adds a message to its stream; `true` if more requests and answers wait than before.
    fn push(
        &mut self,
        session: Option<&str>,
        message: Bytes,
        event: Option<u64>,
        request: Option<Box<str>>,
        settings: &EndpointSettings,
    ) -> bool {
        let own = session.and_then(|id| Some((id, self.session(id, settings.streams)?)));
        let Some((id, own)) = own.filter(|(_, own)| !own.redirected) else {
            self.connection.push(message, request);
            return true;
        };
        let before = own.stream.waiting_bytes();
        match event {
            Some(number) => own.stream.push_event(number, message),
            None => own.stream.push(message, request),
        }
        let grew = own.stream.waiting_bytes() > before;
        self.pace(id, settings);
        grew
    }

    /// Sends the answers that wait for a reader on the connection stream, if the client has left the
    /// session and reads its stream no more.
    fn release(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if !session.is_used() && !session.stream.is_open() {
            for answer in session.stream.take_answers() {
                self.connection.push(answer, None);
            }
        }
    }

    /// Holds a session back while its reader is slow or away, and lets it go on.
    fn pace(&mut self, id: &str, settings: &EndpointSettings) {
        let (connection_open, connection_bytes) =
            (self.connection.is_open(), self.connection.queued_bytes());
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let (open, bytes) = match session.redirected {
            true => (connection_open, connection_bytes),
            false => (session.stream.is_open(), session.stream.queued_bytes()),
        };
        let subscription = session.subscription.as_ref().and_then(Weak::upgrade);
        if let Some(subscription) = subscription {
            subscription.hold(!open || bytes > settings.stream_bytes);
        }
    }

    fn redirected(&self) -> impl Iterator<Item = Box<str>> {
        let sessions = self.sessions.iter();
        let redirected = sessions.filter(|(_, session)| session.redirected);
        redirected.map(|(id, _)| id.clone())
    }

    fn waiting_bytes(&self) -> usize {
        let sessions = self.sessions.values();
        let sessions: usize = sessions.map(|session| session.stream.waiting_bytes()).sum();
        self.connection.waiting_bytes() + sessions
    }
}

impl Session {
    /// Returns whether an answer belongs into the session's own stream.
    ///
    /// The client may have left the session since it asked, as by `session/close`: the updates before
    /// the answer are in this stream, and two streams have no order between them. But what it asks
    /// after that has no stream of its own: the client may be about to end its reader.
    fn takes_answer(&self, was_used: bool) -> bool {
        self.is_used() || (was_used && self.stream.is_open())
    }

    fn is_used(&self) -> bool {
        let subscription = self.subscription.as_ref();
        subscription.is_some_and(|subscription| subscription.strong_count() > 0)
    }
}

impl Gate for Streams {
    fn attached(&self, subscription: &Arc<Subscription>) {
        let id = subscription.session().id().as_str().to_owned();
        let mut state = self.state();
        if let Some(session) = state.session(&id, self.settings.streams) {
            session.subscription = Some(Arc::downgrade(subscription));
        }
        state.pace(&id, &self.settings);
    }
}
