//! The streams of one connection, and which message goes to which.

mod elsewhere;

use std::collections::HashMap;
use std::fmt;
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
    /// Other nodes may have some of the sessions.
    is_relayed: bool,
    /// Woken when a message of a session that another node has may have room.
    held: Option<Waker>,
    /// When the connection was last used, unless a stream is open.
    used: Instant,
}

#[derive(Default)]
struct Session {
    stream: Stream,
    /// Dead until the client is attached.
    subscription: Option<Weak<Subscription>>,
    /// Another node has the session, and the client is attached to it there.
    is_elsewhere: bool,
    redirected: Redirected,
}

/// Whether a session's messages go to the connection stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Redirected {
    #[default]
    No,
    /// Until it is answered that the client has joined the session: what precedes the answer is in
    /// the same stream, although a reader may come meanwhile.
    UntilAnswered,
    /// Until it has a reader, for clients that open the stream of a session only when they are sent
    /// something of it.
    UntilRead,
}

enum Route {
    /// In the body of the response to the POST.
    Body(oneshot::Sender<Bytes>),
    Connection,
    /// The same, for a request that joins this session.
    Joins(Box<str>),
    Session {
        id: Box<str>,
        /// The client was attached to the session when it asked.
        was_used: bool,
        /// The client leaves the session by it.
        leaves: bool,
    },
}

impl Streams {
    /// Creates the streams of a connection. `is_relayed`: other nodes may have some of its sessions.
    pub(super) fn new(settings: EndpointSettings, is_relayed: bool) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(StreamsState {
                connection: Stream::default(),
                sessions: HashMap::new(),
                routes: HashMap::new(),
                closed: false,
                is_relayed,
                held: None,
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
                leaves: envelope::leaves(method),
                id: session.into(),
            },
            Some(session) if envelope::joins(method) => Route::Joins(session.into()),
            _ => Route::Connection,
        };
        state.routes.insert(request.into(), route);
        true
    }

    /// Sends a session's messages on the connection stream until it has a reader.
    pub(super) fn redirect(&self, session: &str) {
        self.redirect_until(session, Redirected::UntilRead);
    }

    fn redirect_until(&self, session: &str, until: Redirected) {
        let mut state = self.state();
        if let Some(entry) = state.session(session, self.settings.streams)
            && !entry.stream.is_open()
            && entry.redirected == Redirected::No
        {
            entry.redirected = until;
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
        let session = outgoing.session();
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
                    Some(Route::Session {
                        id,
                        was_used,
                        leaves,
                    }) => {
                        state.release(&id);
                        let own = state.sessions.get(&id);
                        let own = own.is_some_and(|own| own.takes_answer(was_used));
                        let own = own.then_some(&*id);
                        let grew = state.push(own, message.clone(), None, None, &self.settings);
                        if leaves && !envelope::is_error(&message) {
                            state.left_elsewhere(&id);
                        }
                        grew
                    }
                    Some(Route::Joins(id)) => {
                        let grew = state.push(None, message.clone(), None, None, &self.settings);
                        let is_error = envelope::is_error(&message);
                        state.joined(&id, is_error, &self.settings);
                        grew
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
                let joins = state.joins(id);
                let session = state.session(id, self.settings.streams)?;
                session.redirected = match session.redirected {
                    Redirected::UntilRead if joins => Redirected::UntilAnswered,
                    Redirected::UntilRead => Redirected::No,
                    other => other,
                };
                let subscription = session.subscription.as_ref().and_then(Weak::upgrade);
                let reader = session
                    .stream
                    .open(cursor, |after| Some(subscription?.send_again(after)));
                state.pace(id, &self.settings);
                reader
            }
        };
        state.wake_held();
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
        state.wake_held();
        match taken {
            Taken::Nothing if state.closed => Taken::End,
            taken => taken,
        }
    }

    /// Nothing more is sent: readers end when they have read the rest.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.wake_held();
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
        let own = own.filter(|(_, own)| own.redirected == Redirected::No);
        let Some((id, own)) = own else {
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

    /// Returns whether a request that joins a session is not answered yet.
    fn joins(&self, session: &str) -> bool {
        let mut routes = self.routes.values();
        routes.any(|route| matches!(route, Route::Joins(id) if &**id == session))
    }

    /// A request that joins a session is answered.
    fn joined(&mut self, id: &str, is_error: bool, settings: &EndpointSettings) {
        let (joins, is_relayed) = (self.joins(id), self.is_relayed);
        let session = match is_error {
            true => self.sessions.get_mut(id),
            false => self.session(id, settings.streams),
        };
        if let Some(session) = session {
            if session.redirected == Redirected::UntilAnswered && !joins {
                session.redirected = Redirected::No;
            }
            // The server of this node would have a subscription.
            session.is_elsewhere |= is_relayed && !is_error && !session.is_used();
        }
        self.pace(id, settings);
    }

    /// Holds a session back while its reader is slow or away, and lets it go on.
    fn pace(&mut self, id: &str, settings: &EndpointSettings) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let subscription = session.subscription.as_ref().and_then(Weak::upgrade);
        if let Some(subscription) = subscription {
            subscription.hold(self.is_held(session, settings));
        }
    }

    /// Returns whether the reader of a session is slow or away.
    fn is_held(&self, session: &Session, settings: &EndpointSettings) -> bool {
        let stream = match session.redirected {
            Redirected::No => &session.stream,
            _ => &self.connection,
        };
        !stream.is_open() || stream.queued_bytes() > settings.stream_bytes
    }

    fn redirected(&self) -> impl Iterator<Item = Box<str>> {
        let sessions = self.sessions.iter();
        let redirected = sessions.filter(|(_, session)| session.redirected != Redirected::No);
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
        self.is_elsewhere
            || subscription.is_some_and(|subscription| subscription.strong_count() > 0)
    }
}

impl Gate for Streams {
    fn attached(&self, subscription: &Arc<Subscription>) {
        let id = subscription.session().id().as_str().to_owned();
        let mut state = self.state();
        if let Some(session) = state.session(&id, self.settings.streams) {
            session.subscription = Some(Arc::downgrade(subscription));
            session.is_elsewhere = false;
        }
        state.pace(&id, &self.settings);
    }

    fn precedes_answer(&self, subscription: &Arc<Subscription>) {
        let id = subscription.session().id().as_str();
        if self.state().joins(id) {
            self.redirect_until(id, Redirected::UntilAnswered);
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
