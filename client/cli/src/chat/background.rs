//! Sessions in the background: their events, and turns that go on while another session is shown.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use acp_client::{Error, Event, Events, Outcome, Session, SessionEvent};

use super::pick::Row;
use super::running::Running;
use super::style::{Colour, fit};
use super::view::{View, is_output};
use crate::kept::Kept;

/// Maximum size of the text of a session in the background, in bytes. The latest is kept.
const MOST_UNSEEN: usize = 256 << 10;

/// An open session in the background.
pub(super) struct Open {
    pub(super) number: usize,
    pub(super) session: Session,
    pub(super) events: Events,
    pub(super) view: View,
    /// The lock of its name, if it was continued by its name.
    pub(super) name: Option<Kept>,
    /// Its turn, and what was typed for later.
    pub(super) running: Option<Running>,
    pub(super) queued: VecDeque<String>,
    /// What is in the line again, because the turn has failed or was cancelled.
    pub(super) typed: String,
    /// The text since it is in the background.
    pub(super) unseen: String,
    pub(super) has_news: bool,
    pub(super) has_ended: bool,
}

pub(super) fn label(session: &Session) -> String {
    let title = session.settings().title;
    title.unwrap_or_else(|| session.id().to_string())
}

/// What happens in a session in the background.
pub(super) enum Happened {
    Event(Option<SessionEvent>),
    /// Its turn has ended.
    End(Result<Outcome, Error>),
}

/// Returns what happens next in a session in the background, and its place.
pub(super) async fn next_of(open: &mut [Open]) -> (usize, Happened) {
    poll_fn(|cx| {
        for (place, open) in open.iter_mut().enumerate() {
            if !open.has_ended
                && let Poll::Ready(event) = pin!(open.events.next()).poll(cx)
            {
                return Poll::Ready((place, Happened::Event(event)));
            }
            // All events before the end of the turn were taken in.
            if let Some(running) = &mut open.running
                && let Poll::Ready(outcome) = pin!(running.turn.finish()).poll(cx)
            {
                return Poll::Ready((place, Happened::End(outcome)));
            }
        }
        Poll::Pending
    })
    .await
}

impl Open {
    pub(super) fn row(&self) -> Row {
        let news = match (&self.running, self.unseen.is_empty()) {
            (Some(_), _) => "its turn runs",
            (None, false) => "has news",
            (None, true) => "",
        };
        Row {
            number: self.number,
            title: self.session.settings().title.unwrap_or_default(),
            time: news.to_owned(),
            id: self.session.id().to_string(),
        }
    }

    pub(super) fn label(&self) -> String {
        label(&self.session)
    }

    /// Takes an event in. Returns the line that announces it, if it is the first to be seen.
    pub(super) fn take(&mut self, event: Option<SessionEvent>, width: usize) -> Option<String> {
        let Some(event) = event else {
            self.has_ended = true;
            return None;
        };
        let is_news = matches!(&event.event, Event::Update(update) if is_output(update));
        let shown = self.view.event(&event, width);
        self.add(&shown);
        // The end of a turn is the news of it.
        let is_first = is_news && !self.has_news && self.running.is_none();
        self.has_news |= is_news;
        let (number, label) = (self.number, fit(&self.label(), 40));
        is_first.then(|| format!("session {number} has news: {label} · /switch {number}"))
    }

    fn add(&mut self, shown: &str) {
        self.unseen += shown;
        let too_long = self.unseen.len().saturating_sub(MOST_UNSEEN);
        if too_long > 0 {
            let rest = self.unseen.as_bytes().iter().skip(too_long);
            let line = rest.take_while(|byte| **byte != b'\n').count();
            self.unseen
                .drain(..(too_long + line + 1).min(self.unseen.len()));
        }
    }

    /// Takes the end of its turn in. Returns the line that announces it.
    pub(super) fn end(&mut self, outcome: Result<Outcome, Error>, width: usize) -> String {
        let shown = match &outcome {
            Ok(outcome) => self.view.outcome(outcome, width),
            Err(error) => {
                let mut shown = self.view.end(width);
                for line in crate::exit::explained(error) {
                    shown += &self.view.note(Colour::Red, &line);
                }
                shown
            }
        };
        self.add(&shown);
        let later = match self.queued.len() {
            0 => String::new(),
            lines => format!("; {lines} typed for later"),
        };
        if let Some(running) = self.running.take() {
            if running.ending.cancel.is_cancelled() || outcome.is_err() {
                self.typed = self.queued.drain(..).collect::<Vec<_>>().join("\n");
            }
            if let Some(relay) = running.relay {
                tokio::spawn(relay.end(outcome));
            }
        }
        self.has_news = true;
        let (number, label) = (self.number, fit(&self.label(), 40));
        format!("the turn of session {number} has ended{later}: {label} · /switch {number}")
    }
}
