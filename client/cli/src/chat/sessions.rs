//! The sessions of a chat: those that it has opened, and those that the agent stores.

use std::collections::VecDeque;

use acp_sdk::v1::SessionId;

use super::Failure;
use super::ask::Asked;
use super::background::{Happened, Open, label};
use super::input::Keyboard;
use super::pick::{pick, stored};
use super::running::{Ending, Running};
use super::screen::Screen;
use super::style::{Colour, Face, clean, fit};
use super::talk::Talk;
use super::view::View;
use crate::kept::Kept;
use crate::opening::{can_continue, continues};
use crate::opening_failure::OpeningFailure;
use acp_client::{Error, Events, Session};
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of entries that stay on the terminal.
const MOST_PRINTED: usize = 20;

/// Maximum number of sessions that are open; the first one that is in the background is left for a new one.
const MOST_OPEN: usize = 8;

impl Talk<'_> {
    /// Executes `/resume` and `/sessions`. Without a session, the user chooses one.
    pub(super) async fn resume(
        &mut self,
        wanted: &str,
        keyboard: &mut Keyboard,
    ) -> Result<String, Failure> {
        let Some(client) = self.slot.as_ref().filter(|_| !self.lost) else {
            return Ok(NO_AGENT.to_owned());
        };
        let identity = self.args.setup.agent.identity();
        if !wanted.is_empty() {
            return Ok(match self.named(wanted, &identity) {
                Ok((id, name)) => self.continue_session(id, name).await,
                Err(reason) => clean(&reason) + "\n",
            });
        }
        self.listed = match stored(client, &self.cwd, &identity).await {
            Ok(rows) => rows,
            Err(error) => {
                let failure = OpeningFailure::from(error);
                return Ok(failure.lines().join("\n") + "\n");
            }
        };
        if self.listed.is_empty() {
            return Ok("The agent has no stored session of this directory.\n".to_owned());
        }
        let chosen = pick(&self.listed, keyboard, &mut self.screen, self.paint).await?;
        let Some(row) = chosen.and_then(|index| self.listed.get(index)) else {
            return Ok(self.list());
        };
        let id = SessionId::from(row.id.as_str());
        Ok(self.continue_session(id, None).await)
    }

    /// Returns the numbered list, to which the argument of `/resume` refers.
    fn list(&self) -> String {
        let width = Screen::width();
        let rows = self.listed.iter().take(MOST_PRINTED);
        let mut text: String = rows.map(|row| row.line(width) + "\n").collect();
        let more = self.listed.len().saturating_sub(MOST_PRINTED);
        if more > 0 {
            text += &format!("     {more} more\n");
        }
        text + "/resume NUMBER continues one of them.\n"
    }

    /// Returns the session of a name, else of a number of the last list, else of an id; and the lock of
    /// the name.
    fn named(&self, wanted: &str, agent: &str) -> Result<(SessionId, Option<Kept>), String> {
        let directory = self.cwd.to_string_lossy();
        if let Some(id) = Kept::find(wanted, agent, &directory)? {
            let is_open = *self.session.id() == id || self.place_of(&id).is_some();
            let name = match is_open {
                true => None,
                false => Some(Kept::take(wanted, agent, &directory)?),
            };
            return Ok((id, name));
        }
        let number = wanted.parse::<usize>().ok();
        let row = number.and_then(|number| self.listed.get(number.checked_sub(1)?));
        Ok((SessionId::from(row.map_or(wanted, |row| &row.id)), None))
    }

    pub(super) fn place_of(&self, id: &SessionId) -> Option<usize> {
        let mut others = self.others.iter();
        others.position(|open| open.session.id() == id)
    }

    async fn continue_session(&mut self, id: SessionId, name: Option<Kept>) -> String {
        if *self.session.id() == id {
            return "This session is the current one.\n".to_owned();
        }
        if let Some(place) = self.place_of(&id) {
            return self.change_to(place);
        }
        let Some(client) = &self.slot else {
            return NO_AGENT.to_owned();
        };
        let line = continues(client, &id);
        match self.opening.again(client, id, &self.cwd, true).await {
            Ok((session, events)) => {
                let closed = self.enter(session, events);
                self.name = name;
                clean(&line) + "\n" + &closed
            }
            Err(failure) => failure.lines().join("\n") + "\n",
        }
    }

    /// Returns the text of a request. If another session asks, that is named first.
    pub(super) fn question(&mut self, asked: &mut Asked) -> String {
        let (width, paint, id) = (Screen::width(), self.paint, asked.session());
        let mut heading = String::new();
        let changes = if id == self.session.id() {
            asked.changes(Some(&mut self.view), width, paint)
        } else if let Some(open) = self.others.iter_mut().find(|open| open.session.id() == id) {
            heading = format!("In session {} ({}):", open.number, fit(&open.label(), 60));
            asked.changes(Some(&mut open.view), width, paint)
        } else {
            heading = format!("In session {}:", fit(id.as_ref(), 60));
            asked.changes(None, width, paint)
        };
        if !heading.is_empty() {
            heading = self.view.note(Colour::Yellow, &heading);
        }
        heading + &asked.text(&mut self.view, changes, width, paint)
    }

    /// Executes `/new`.
    pub(super) async fn new_session(&mut self) -> String {
        let Some(client) = self.slot.as_ref().filter(|_| !self.lost) else {
            return NO_AGENT.to_owned();
        };
        let before = Some(self.session.id());
        match self.opening.begin(client, &self.cwd, before).await {
            Ok((session, events)) => "A new session.\n".to_owned() + &self.enter(session, events),
            Err(failure) => failure.lines().join("\n") + "\n",
        }
    }

    /// Executes `/fork`.
    pub(super) async fn fork(&mut self) -> String {
        let Some(client) = self.slot.as_ref().filter(|_| !self.lost) else {
            return NO_AGENT.to_owned();
        };
        let forked = self.opening.fork(client, self.session.id(), &self.cwd);
        match forked.await {
            Ok((session, events)) => {
                let before = self.number;
                let closed = self.enter(session, events);
                format!(
                    "The chat goes on in a copy of session {before}. /switch {before} goes back.\n{closed}"
                )
            }
            Err(OpeningFailure::Error(Error::Unsupported { .. })) => {
                "The agent cannot fork sessions. /new begins a new one.\n".to_owned()
            }
            Err(failure) => failure.lines().join("\n") + "\n",
        }
    }

    /// Executes `/switch`.
    pub(super) async fn switch(
        &mut self,
        wanted: &str,
        keyboard: &mut Keyboard,
    ) -> Result<String, Failure> {
        let number = match wanted.parse::<usize>() {
            Ok(number) => number,
            Err(_) if wanted.is_empty() && self.others.is_empty() => {
                return Ok(
                    "No other session is open. /sessions continues a stored one.\n".to_owned(),
                );
            }
            Err(_) if wanted.is_empty() => {
                let rows: Vec<_> = self.others.iter().map(Open::row).collect();
                let chosen = pick(&rows, keyboard, &mut self.screen, self.paint).await?;
                match chosen.and_then(|index| rows.get(index)) {
                    Some(row) => row.number,
                    None => return Ok(String::new()),
                }
            }
            Err(_) => 0,
        };
        if number == self.number {
            return Ok("This session is the current one.\n".to_owned());
        }
        let place = self.others.iter().position(|open| open.number == number);
        Ok(match place {
            Some(place) => self.change_to(place),
            None => format!(
                "No session {} is open. /switch lists those that are.\n",
                fit(wanted, 20)
            ),
        })
    }

    /// Goes on in a session that was opened, and sets the current one aside. Returns the line about a
    /// session that was closed for it.
    fn enter(&mut self, session: Session, events: Events) -> String {
        let mut closed = String::new();
        if self.others.len() + 1 >= MOST_OPEN {
            // A turn that runs is not cancelled if there is another choice.
            let mut idle = self.others.iter();
            let first = idle.position(|open| open.running.is_none());
            let open = self.others.remove(first.unwrap_or(0));
            let (number, label) = (open.number, fit(&open.label(), 40));
            let id = clean(open.session.id().as_ref());
            let again = match self.slot.as_ref().is_some_and(can_continue) {
                true => format!("/resume {id} continues it."),
                false => "The agent cannot continue it.".to_owned(),
            };
            closed = format!(
                "Session {number} ({label}) was closed: {MOST_OPEN} sessions are open. {again}\n"
            );
        }
        self.opened += 1;
        let open = Open {
            number: self.opened,
            session,
            events,
            view: View::new(self.paint),
            name: None,
            running: None,
            queued: VecDeque::new(),
            typed: String::new(),
            unseen: String::new(),
            has_news: false,
            has_ended: false,
        };
        self.swap(open);
        closed
    }

    fn swap(&mut self, mut other: Open) {
        std::mem::swap(&mut self.number, &mut other.number);
        std::mem::swap(&mut self.session, &mut other.session);
        std::mem::swap(&mut self.events, &mut other.events);
        std::mem::swap(&mut self.view, &mut other.view);
        std::mem::swap(&mut self.name, &mut other.name);
        std::mem::swap(&mut self.running, &mut other.running);
        (other.has_news, other.has_ended) = (false, false);
        self.others.push(other);
        if self.running.is_none() {
            self.view.begin();
        }
    }

    /// Goes on in an open session. Returns what happened in it meanwhile.
    pub(super) fn change_to(&mut self, place: usize) -> String {
        let mut next = self.others.remove(place);
        let mut unseen = std::mem::take(&mut next.unseen);
        if next.running.is_none() {
            unseen += &next.view.end(Screen::width());
        }
        let mut queued = std::mem::take(&mut next.queued);
        queued.append(&mut self.queued);
        self.queued = queued;
        self.typed += &std::mem::take(&mut next.typed);
        self.swap(next);
        let title = fit(&label(&self.session), Screen::width().saturating_sub(16));
        format!("Session {}: {title}\n{unseen}", self.number)
    }

    /// Takes in what happens in a session in the background. Returns the lines that announce it. `runs`: whether
    /// the session that is shown has a turn.
    pub(super) async fn happens(
        &mut self,
        place: usize,
        happened: Happened,
        runs: bool,
    ) -> Option<String> {
        let (open, width) = (self.others.get_mut(place)?, Screen::width());
        let (news, has_ended) = match happened {
            Happened::Event(event) => (open.take(event, width)?, false),
            Happened::End(outcome) => (open.end(outcome, width), true),
        };
        let mut news = self.view.dim(&news);
        if has_ended {
            let runs = runs || self.running_elsewhere().is_some();
            news += &self.between_turns(runs).await;
        }
        Some(news)
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

const NO_AGENT: &str = "There is no agent; the next prompt starts it.\n";
