//! Sessions that other nodes have. Their subscriptions are there, so their messages wait for the
//! readers of this node on the way to it.

use std::task::Waker;

use super::super::envelope::Outgoing;
use super::super::position::Position;
use super::{Name, Redirected, Streams, StreamsState};
use crate::nodes::Pace;

impl Streams {
    /// Returns whether a reader with a cursor can be sent what follows it. It cannot if that was written already,
    /// and another node has the session: the log is there.
    pub(in super::super) fn can_continue(&self, name: &Name, cursor: Option<Position>) -> bool {
        let (Name::Session(id), Some(cursor)) = (name, cursor) else {
            return true;
        };
        let state = self.state();
        let Some(session) = state.sessions.get(id) else {
            return true;
        };
        // Its replay is sent before the answer that the client has joined it there.
        let joins_elsewhere = || state.is_relayed && !session.is_used() && state.joins(id);
        let is_elsewhere = session.is_elsewhere || joins_elsewhere();
        !is_elsewhere || session.stream.has_after(cursor.event)
    }
}

impl StreamsState {
    /// The client has left a session that another node has.
    pub(super) fn left_elsewhere(&mut self, id: &str) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.is_elsewhere = false;
        }
    }

    pub(super) fn wake_held(&mut self) {
        if let Some(waker) = self.held.take() {
            waker.wake();
        }
    }
}

impl Pace for Streams {
    fn holds(&self, message: &[u8], waker: &Waker) -> bool {
        let outgoing = Outgoing::parse(message);
        // Requests and answers wait in the streams, as those of this node do.
        let Some(id) = outgoing.session().filter(|_| outgoing.id.is_none()) else {
            return false;
        };
        let mut state = self.state();
        let joins = state.joins(id);
        let Some(session) = state.session(id, self.settings.streams) else {
            return false;
        };
        // As `Gate::precedes_answer`.
        if joins && !session.stream.is_open() && session.redirected == Redirected::No {
            session.redirected = Redirected::UntilAnswered;
        }
        let Some(session) = state.sessions.get(id).filter(|_| !state.closed) else {
            return false;
        };
        let held = state.is_held(session, &self.settings);
        if held {
            state.held = Some(waker.clone());
        }
        held
    }
}
