//! Sessions in the background: their events, and turns that go on while another session is shown.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use acp_client::{Error, Event, Outcome, SessionEvent, Turn};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::Failure;
use super::ask::Asked;
use super::prompted::Relay;
use super::screen::Screen;
use super::sessions::{Open, label};
use super::style::{Colour, Face, fit};
use super::talk::Talk;
use super::turn::Ending;
use super::view::is_output;
use crate::control::Begun;

/// Maximum size of the text of a session in the background, in bytes. The latest is kept.
const MOST_UNSEEN: usize = 256 << 10;

/// A turn that runs.
pub(super) struct Running {
    pub(super) turn: Turn,
    pub(super) begun: Instant,
    pub(super) ending: Ending,
    /// The output for the command that has sent the prompt.
    pub(super) relay: Option<Relay>,
    /// Shows it to `acp status`.
    pub(super) control: Begun,
    /// Cancels it in the background, for `acp cancel`.
    pub(super) cancelling: Option<AbortOnDropHandle<()>>,
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
    pub(super) fn label(&self) -> String {
        label(&self.session)
    }

    /// Takes an event in. Returns the line that announces it, if it is the first to be seen.
    fn take(&mut self, event: Option<SessionEvent>, width: usize) -> Option<String> {
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
    fn end(&mut self, outcome: Result<Outcome, Error>, width: usize) -> String {
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

impl Talk<'_> {
    /// Takes in what happens in a session in the background. Returns the line that announces it.
    pub(super) fn happens(&mut self, place: usize, happened: Happened) -> Option<String> {
        let (open, width) = (self.others.get_mut(place)?, Screen::width());
        let news = match happened {
            Happened::Event(event) => open.take(event, width)?,
            Happened::End(outcome) => open.end(outcome, width),
        };
        Some(self.view.dim(&news))
    }

    /// Returns whether `/switch` to this session leaves the running turn; says why not.
    pub(super) fn may_leave(&mut self, number: usize, ending: &Ending) -> bool {
        let line = if ending.steering.waiting().next().is_some() {
            "the agent has not answered yet whether the turn takes the input"
        } else if self.others.iter().any(|open| open.number == number) {
            return true;
        } else {
            "no other session of this number is open"
        };
        let line = self.view.aside(line);
        self.screen.print(&line);
        false
    }

    /// Changes to another session while the turn goes on. What was typed for later waits for it.
    pub(super) async fn leave(&mut self, mut turn: Running, number: usize) -> Result<(), Failure> {
        self.screen.end_live();
        self.after_turn().await?;
        let mut others = self.others.iter();
        let Some(place) = others.position(|open| open.number == number) else {
            self.running = Some(turn);
            return Ok(());
        };
        let (cancel, session) = (turn.ending.cancel.clone(), self.session.clone());
        turn.cancelling = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            cancel.cancelled().await;
            session.cancel();
        })));
        let (before, queued) = (self.number, std::mem::take(&mut self.queued));
        self.running = Some(turn);
        let shown = self.change_to(place);
        if let Some(open) = self.others.last_mut() {
            open.queued = queued;
        }
        let line = format!("the turn of session {before} goes on; /switch {before} shows it");
        let line = self.paint.text(Face::DIM, &line);
        self.screen.print(&format!("{line}\n{shown}"));
        Ok(self.screen.flush().await?)
    }

    /// Holds a question of a turn in the background. Returns the line that announces it, or `None` if there
    /// is no such turn.
    pub(super) fn hold(&mut self, asked: Asked) -> Option<String> {
        let id = asked.session();
        let mut others = self.others.iter();
        let number = match others.clone().find(|open| open.session.id() == id) {
            Some(open) => open.running.as_ref().map(|_| open.number)?,
            None if self.session.id() == id => return None,
            // A session of the agent's own is that of a turn.
            None => others.find(|open| open.running.is_some())?.number,
        };
        self.held = Some(asked);
        Some(format!("session {number} asks something: /switch {number}"))
    }

    /// Returns whether a turn of the named session runs in the background.
    pub(super) fn named_runs(&self) -> bool {
        let named = self.opening.named();
        let mut running = self.others.iter().filter(|open| open.running.is_some());
        running.any(|open| Some(open.session.id()) == named)
    }

    /// Returns which turns run in the background, or nothing.
    pub(super) fn running_elsewhere(&self) -> Option<String> {
        let running = self.others.iter().filter(|open| open.running.is_some());
        let numbers: Vec<_> = running.map(|open| open.number.to_string()).collect();
        match numbers.as_slice() {
            [] => None,
            [number] => Some(format!("session {number} runs")),
            numbers => Some(format!("sessions {} run", numbers.join(", "))),
        }
    }
}
