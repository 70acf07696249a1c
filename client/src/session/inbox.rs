//! The queue of one session's updates, and its readers.
//!
//! Each event is delivered to every [`Events`](super::Events) of the session and to its turn.
//! Delivering an update waits while one of these readers has too much unread; the connection then
//! stops reading, which is backpressure on the agent. Events without a reader are kept for the
//! first `Events`: the latest ones, up to a limit in bytes. No turn receives events of another one.

mod delivery;
mod v2;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_sdk::json::encoded_len;
use acp_sdk::v1::{
    ContentBlock, MessageId, RequestPermissionRequest, SessionUpdate, StopReason, UsageUpdate,
};

use self::delivery::Backlog;
pub(crate) use self::delivery::{ReaderTimeout, Waiting};
use super::calls::Calls;
use super::children::ChildUpdate;
use super::event::Gap;
use super::event::{Answered, Event, Origin, Phase, SessionEvent};
use super::outcome::CostBefore;
use super::reader::{OVERHEAD, Reader};
use super::settings::SessionSettings;
use super::turn_state::{Signal, TurnState};
use super::weight::weight;
use crate::guard::{Approvals, Ended, Unasked};
use crate::hooks::Directories;
use crate::permission::PermissionRequest;

/// Receives the updates of one session.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<State>);

#[derive(Debug)]
struct State {
    claimed: bool,
    phase: Phase,
    /// The latest turn.
    turn: Option<Arc<TurnState>>,
    turns: u64,
    /// The directories of the session, once they are known.
    directories: Option<Arc<Directories>>,
    readers: Vec<Arc<Reader>>,
    /// Events without a reader; `None` after the first `Events`.
    backlog: Option<Backlog>,
    settings: SessionSettings,
    /// The cost of the session before the next turn.
    cost: CostBefore,
    calls: Calls,
    approvals: Approvals,
    /// The latest messages of the user that the agent has sent.
    heard: VecDeque<MessageId>,
    v2: v2::StateV2,
    /// Whether the connection or the session has ended.
    ended: bool,
}

/// What is left to do after an update was delivered.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Rest {
    /// An event that some readers have no capacity for.
    pub(crate) waiting: Option<Waiting>,
    /// A tool call that nobody allowed has completed.
    pub(crate) unasked: Option<Box<Unasked>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            claimed: false,
            phase: Phase::Live,
            turn: None,
            turns: 0,
            directories: None,
            readers: Vec::new(),
            backlog: Some(Backlog::default()),
            settings: SessionSettings::default(),
            cost: CostBefore::default(),
            calls: Calls::default(),
            approvals: Approvals::default(),
            heard: VecDeque::new(),
            v2: v2::StateV2::default(),
            ended: false,
        }
    }
}

impl Inbox {
    /// Marks the session as known, which raises the limit of kept events.
    pub(crate) fn claim(&self) {
        self.lock().claimed = true;
    }

    /// Marks the session as one with earlier turns.
    pub(crate) fn continues(&self) {
        self.lock().cost = CostBefore::Unknown;
    }

    /// Marks later updates as history.
    pub(crate) fn begin_history(&self) {
        let mut state = self.lock();
        state.phase = Phase::Replayed;
        state.v2.converter.restart();
    }

    /// Ends the complete history, if there is one.
    pub(crate) fn end_history(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Replayed {
            state.phase = Phase::Live;
            state.push_now(Event::HistoryEnd, None);
        }
    }

    /// Ends a history that is not complete: there is no event of its end.
    pub(crate) fn abort_history(&self) {
        self.lock().phase = Phase::Live;
    }

    /// Begins a turn, whose prompt may have an id. If one is running, returns that one instead.
    pub(crate) fn begin(
        &self,
        prompt: &[ContentBlock],
        prompt_id: Option<&str>,
    ) -> Result<Arc<TurnState>, Arc<TurnState>> {
        let mut state = self.lock();
        if let Some(turn) = state.running() {
            return Err(turn.clone());
        }
        state.turns += 1;
        state.approvals.begin_turn();
        let cost = match &state.cost {
            CostBefore::Nothing => std::mem::replace(&mut state.cost, CostBefore::Unknown),
            known => known.clone(),
        };
        let prompt_id = prompt_id.map(str::to_owned);
        let turn = Arc::new(TurnState::new(state.turns, prompt_id, cost));
        if state.ended {
            turn.reader.close();
        }
        state.turn = Some(turn.clone());
        if !state.readers.is_empty() {
            let prompt = prompt.to_vec();
            state.push_now(Event::TurnStarted { prompt }, Some(turn.number));
        }
        Ok(turn)
    }

    /// Delivers what this client has said during a turn, which the agent does not repeat.
    /// After a connection was lost, it may have sent it.
    pub(crate) fn push_steered(&self, said: Vec<SessionUpdate>, message: Option<&str>) {
        let mut state = self.lock();
        let is_message = |heard: &MessageId| Some(heard.as_str()) == message;
        if state.heard.iter().any(is_message) {
            return;
        }
        let turn = state.running().map(|turn| turn.number);
        for update in said {
            state.push_now(Event::Update(update), turn);
        }
    }

    /// Ends a turn with the agent's response. Later updates belong to no turn.
    pub(crate) fn end_turn(&self, turn: &TurnState, stop_reason: Option<StopReason>) {
        let mut state = self.lock();
        if turn.signals.has(Signal::Ended) {
            return;
        }
        turn.signals.set(Signal::Ended);
        turn.reader.close();
        if !state.readers.is_empty() {
            state.push_now(Event::TurnEnded { stop_reason }, Some(turn.number));
        }
    }

    /// Stops waiting for the end of a turn. Updates until then still belong to it.
    pub(crate) fn give_up_turn(&self, turn: &TurnState) {
        turn.signals.set(Signal::Overdue);
        turn.reader.close();
    }

    /// Returns the turn that is running.
    pub(crate) fn turn(&self) -> Option<Arc<TurnState>> {
        self.lock().running().cloned()
    }

    /// Delivers an update. Returns an event that some readers have no capacity for, to be
    /// [delivered later](Self::put_in). The methods are separate, because this case is rare and
    /// would add the state of the wait to every update.
    pub(crate) fn push_update(&self, update: SessionUpdate, origin: Origin) -> Rest {
        let bytes = weight(&update);
        let mut state = self.lock();
        let ended = state.calls.remember(&update, origin.prompt_id.as_ref());
        let _ = state.settings.apply(&update);
        if let SessionUpdate::UserMessageChunk(chunk) = &update {
            state.hear(chunk.message_id.as_ref());
        }
        // A session may be loaded again while a prompt waits for that.
        let is_live = state.phase == Phase::Live;
        let is_own = |turn: &&Arc<TurnState>| turn.has(origin.prompt_id.as_deref());
        let turn = state.running().filter(is_own).filter(|_| is_live).cloned();
        if let Some(turn) = &turn {
            turn.gathering().update(&update);
        }
        if let SessionUpdate::UsageUpdate(UsageUpdate {
            cost: Some(cost), ..
        }) = &update
        {
            state.cost = CostBefore::Known(cost.clone());
            let waiting = state.running().filter(|_| is_live && turn.is_none());
            if let Some(waiting) = waiting {
                waiting.gathering().cost_before(cost);
            }
        }
        // What another client's prompt did is for that client.
        let unasked = match (ended, &turn) {
            (Some(ended), Some(turn)) => state.unasked(ended, turn.clone()),
            _ => None,
        };
        let event = SessionEvent {
            event: Event::Update(update),
            phase: state.phase,
            turn: turn.as_ref().map(|turn| turn.number),
            number: origin.number,
            prompt_id: origin.prompt_id,
        };
        Rest {
            waiting: state.deliver(event, bytes, turn.as_deref()),
            unasked,
        }
    }

    /// Delivers an update of a child session, whose tool calls `child` remembers. Tool calls that nobody
    /// allowed belong to the running turn.
    pub(crate) fn push_child_update(
        &self,
        child: &Self,
        update: ChildUpdate,
        origin: &Origin,
    ) -> Rest {
        let bytes = weight(&update.update);
        let ended = child.lock().calls.remember(&update.update, None);
        let mut state = self.lock();
        let prompt_id = origin.prompt_id.as_deref();
        let is_own = |turn: &&Arc<TurnState>| prompt_id.is_none() || turn.has(prompt_id);
        let turn = state.running().filter(is_own).cloned();
        let unasked = match (ended, &turn) {
            (Some(ended), Some(turn)) => state.unasked(ended, turn.clone()),
            _ => None,
        };
        let event = SessionEvent {
            phase: state.phase,
            turn: turn.as_ref().map(|turn| turn.number),
            prompt_id: origin.prompt_id.clone(),
            ..SessionEvent::live(Event::ChildSession(Box::new(update)), None)
        };
        Rest {
            waiting: state.deliver(event, bytes, turn.as_deref()),
            unasked,
        }
    }

    /// Queues an entry other than an update, as [`push_update`](Self::push_update) does.
    #[must_use]
    fn push_event(&self, event: Event, bytes: usize, turn: Option<&TurnState>) -> Option<Waiting> {
        let event = SessionEvent::live(event, turn.map(|turn| turn.number));
        self.lock().deliver(event, bytes, turn)
    }

    /// Delivers the event of a gap.
    pub(crate) async fn missing(&self, gap: Gap, reader_timeout: &ReaderTimeout<'_>) {
        let turn = self.turn();
        if let Some(waiting) = self.push_event(Event::Gap(gap), OVERHEAD, turn.as_deref()) {
            self.put_in(waiting, reader_timeout).await;
        }
    }

    /// Delivers an answered permission request of a turn.
    pub(crate) async fn answered(
        &self,
        answered: Answered,
        turn: Option<&TurnState>,
        reader_timeout: &ReaderTimeout<'_>,
    ) {
        self.lock().approvals.answered(&answered);
        let bytes = OVERHEAD + encoded_len(&answered.question.request);
        let event = Event::Permission(Box::new(answered));
        if let Some(waiting) = self.push_event(event, bytes, turn) {
            self.put_in(waiting, reader_timeout).await;
        }
    }

    /// Changes what is known to be allowed.
    pub(crate) fn approvals<T>(&self, change: impl FnOnce(&mut Approvals) -> T) -> T {
        change(&mut self.lock().approvals)
    }

    /// Returns a permission request, completed with earlier information about its tool call, and the
    /// turn that it belongs to: that of the call, else the running one. The call was `announced` in
    /// this session or in one of the agent's own.
    pub(crate) fn question(
        &self,
        request: RequestPermissionRequest,
        announced: &Self,
    ) -> (PermissionRequest, Option<Arc<TurnState>>) {
        let mut question = announced.lock().calls.question(request);
        let state = self.lock();
        let prompt_id = state
            .calls
            .prompt_of(&question.request.tool_call.tool_call_id);
        let is_own = |turn: &&Arc<TurnState>| prompt_id.is_none_or(|id| turn.has(id));
        let turn = state.running().filter(is_own).cloned();
        question.cwd = state.cwd();
        (question, turn)
    }

    /// Waits until the readers of all events, and of the turn, have processed the events so far.
    /// `false` if one of them takes nothing for `limit`.
    pub(crate) async fn caught_up(&self, turn: Option<&TurnState>, limit: Duration) -> bool {
        let mut readers = self.lock().readers.clone();
        readers.extend(turn.map(|turn| turn.reader.clone()));
        for reader in readers {
            if !reader.caught_up(limit).await {
                return false;
            }
        }
        true
    }

    /// Waits until each reader of all events has processed the events so far, or takes nothing for
    /// `limit`.
    pub(crate) async fn all_read(&self, limit: Duration) {
        let readers = self.lock().readers.clone();
        for reader in readers {
            reader.caught_up(limit).await;
        }
    }

    /// Adds a reader of all events. The first receives the kept events.
    pub(crate) fn add_reader(&self) -> Arc<Reader> {
        let mut state = self.lock();
        let reader = Arc::new(match state.backlog.take() {
            Some(backlog) => Reader::starting_with(backlog.events, backlog.dropped),
            None => Reader::default(),
        });
        if state.ended {
            reader.close();
        }
        state.readers.push(reader.clone());
        reader
    }

    pub(crate) fn remove_reader(&self, reader: &Arc<Reader>) {
        reader.leave();
        self.lock()
            .readers
            .retain(|other| !Arc::ptr_eq(other, reader));
    }

    /// Ends all readers after their queued events.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.readers.iter().for_each(|reader| reader.close());
        if let Some(turn) = state.running() {
            turn.reader.close();
        }
    }

    pub(crate) fn set_directories(&self, directories: Arc<Directories>) {
        self.lock().directories = Some(directories);
    }

    pub(crate) fn directories(&self) -> Option<Arc<Directories>> {
        self.lock().directories.clone()
    }

    /// Returns the current modes, config options, commands and title.
    pub(crate) fn settings(&self) -> SessionSettings {
        self.lock().settings.clone()
    }

    pub(crate) fn change_settings(&self, change: impl FnOnce(&mut SessionSettings)) {
        change(&mut self.lock().settings);
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Remembers a message of the user that the agent has sent: as many as the input that may wait.
    fn hear(&mut self, message: Option<&MessageId>) {
        const MOST_HEARD: usize = 16;
        let Some(message) = message.filter(|message| self.heard.back() != Some(message)) else {
            return;
        };
        if self.heard.len() >= MOST_HEARD {
            self.heard.pop_front();
        }
        self.heard.push_back(message.clone());
    }

    /// Returns a tool call that has completed if nobody allowed it.
    fn unasked(&mut self, mut ended: Ended, turn: Arc<TurnState>) -> Option<Box<Unasked>> {
        ended.call.cwd = self.cwd();
        self.approvals.ended(ended, turn).map(Box::new)
    }

    fn cwd(&self) -> Option<PathBuf> {
        Some(self.directories.as_ref()?.cwd().to_owned())
    }

    fn running(&self) -> Option<&Arc<TurnState>> {
        let turn = self.turn.as_ref();
        turn.filter(|turn| !turn.signals.has(Signal::Ended))
    }
}

#[cfg(test)]
mod tests;
