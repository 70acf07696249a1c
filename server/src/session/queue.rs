//! The prompts of a session: one runs, the others wait in the order of arrival.
//!
//! A cancellation is for the running prompt, and for those of its sender that have arrived; the program
//! may cancel all. It never touches a later one, and in an idle session it does nothing. Prompts that
//! wait are answered at once and leave no trace in the log. Those that outlive the process (`kept`) are
//! in the store while they wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use acp_sdk::v1::StopReason;
use acp_sdk::{HandlerError, HandlerResult};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::named::{NamedPrompt, NamedPrompts};
use super::prompt::{Identity, Progress, Prompt, Ticket, TurnResult};
use super::steering::Delivered;
use super::turns::{TurnEvents, Turns};
use crate::Error;
use crate::connection::ClientId;
use crate::event::TurnId;
use crate::handler::HandlerState;
use crate::limits::{Limits, SecondPrompt};
use crate::log::Appender;
use crate::store::StoreError;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No turn runs.
    Idle,
    /// A turn runs.
    Running,
    /// The running turn has been cancelled and has not ended yet.
    Cancelling,
    /// The session is closed.
    Closed,
}

impl Phase {
    /// Returns the name on the wire, such as `idle`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Closed => "closed",
        }
    }
}

/// Why a prompt is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server is about to end.
    Draining,
    /// The session is closed.
    Closed,
    /// As many prompts wait as may.
    QueueFull,
    /// The prompts that wait are too large together.
    TooLarge,
    /// A turn runs, and prompts are not queued.
    Busy,
    /// The name of the prompt is empty or too long.
    NameLength,
    /// A prompt with the same name has other content.
    OtherContent,
}

impl Refusal {
    /// Returns the reason for people.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Closed => "it is closed",
            Self::Draining => "the server is about to end",
            Self::QueueFull => "too many prompts are waiting; await an answer first",
            Self::TooLarge => "the prompt is larger than the limit `prompt_bytes`",
            Self::NameLength => "its key must have 1 to 128 bytes",
            Self::OtherContent => {
                "its key was used for a prompt with other content; use a new key for a new prompt"
            }
            Self::Busy => "a turn is running; await its end or cancel it first",
        }
    }

    pub(super) fn error(self, session: &Session) -> Error {
        let (session, reason) = (session.id().clone(), self.reason());
        match self {
            Self::Closed => Error::SessionClosed(session),
            _ => Error::PromptRefused { session, reason },
        }
    }
}

/// Whether a session takes prompts, and runs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lifecycle {
    /// Prompts of its handler wait until it is open.
    #[default]
    Opening,
    Open,
    Closed,
}

/// Prompts that are cancelled: the running one, and those that have left the queue.
#[must_use]
pub(super) struct Cancelled {
    running: Option<CancellationToken>,
    waiting: VecDeque<Prompt>,
}

impl Cancelled {
    /// Answers those that have left the queue with `stop`. Not to be called with the session's lock:
    /// whoever wakes up may want it. Returns the rows of the store that have them.
    #[must_use]
    pub(super) fn notify(self, stop: &HandlerResult<StopReason>) -> Vec<u64> {
        if let Some(running) = self.running {
            running.cancel();
        }
        let rows = self.waiting.iter().filter_map(Prompt::row).collect();
        for prompt in self.waiting {
            // For those that wait with input for its turn.
            prompt.cancel.cancel();
            prompt.end(TurnResult::without_turn(stop.clone()));
        }
        rows
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Prompt>,
    bytes: usize,
    running: Option<Running>,
    /// The turn that has ended, until its input is answered.
    ended: Option<Running>,
    /// The latest turn, which may run.
    latest: Option<(TurnId, Arc<Progress>)>,
    last_end: u64,
    /// The latest prompts with a name.
    named: NamedPrompts,
    /// The latest input with a name that a turn has taken.
    delivered: Delivered,
    turns: Turns,
    /// The highest number of a prompt in the store.
    rows: u64,
    /// Whether a runner task exists.
    has_runner: bool,
    lifecycle: Lifecycle,
    /// Notified when the runner ends.
    idle: Vec<oneshot::Sender<()>>,
}

/// The running turn.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) turn: Option<TurnId>,
    pub(crate) origin: Option<ClientId>,
    /// The name of its prompt.
    name: Option<Arc<str>>,
    progress: Arc<Progress>,
    cancel: CancellationToken,
}

impl Queue {
    /// Creates the queue of a session whose events up to `copied` are another session's.
    pub(super) fn new(copied: u64) -> Self {
        Self {
            named: NamedPrompts::new(copied),
            ..Self::default()
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match &self.running {
            _ if self.is_closed() => Phase::Closed,
            None if self.waiting.is_empty() => Phase::Idle,
            Some(running) if running.cancel.is_cancelled() => Phase::Cancelling,
            _ => Phase::Running,
        }
    }

    pub(crate) fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lifecycle == Lifecycle::Closed
    }

    /// Refuses further prompts if there are none; `false` if there are, or the session is not open.
    pub(crate) fn close_if_idle(&mut self) -> bool {
        let is_idle =
            self.lifecycle == Lifecycle::Open && !self.has_runner && self.waiting.is_empty();
        if is_idle {
            self.lifecycle = Lifecycle::Closed;
        }
        is_idle
    }

    pub(crate) fn has_runner(&self) -> bool {
        self.has_runner
    }

    /// Takes the prompts that are meant out of the queue.
    pub(super) fn cancel(&mut self, is_meant: impl Fn(Identity<'_>) -> bool) -> Cancelled {
        let running = self.running.as_ref().filter(|running| {
            is_meant(Identity {
                origin: running.origin,
                progress: &running.progress,
                is_running: true,
            })
        });
        let running = running.map(|running| running.cancel.clone());
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (waiting, kept) = all.partition(|prompt| is_meant(prompt.identity()));
        self.waiting = kept;
        self.bytes = self.waiting.iter().map(|prompt| prompt.bytes).sum();
        Cancelled { running, waiting }
    }

    /// Adds a prompt; `true` if a runner must be started.
    fn push(
        &mut self,
        prompt: Prompt,
        limits: &Limits,
        policy: SecondPrompt,
    ) -> Result<bool, Refusal> {
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        if prompt.bytes > limits.prompt_bytes {
            return Err(Refusal::TooLarge);
        }
        let is_opening = self.lifecycle == Lifecycle::Opening;
        let busy = self.has_runner || is_opening && !self.waiting.is_empty();
        // A turn whose end is in the log does not count, although the runner may still hold it: its
        // client may prompt again as soon as it has the answer.
        let runs = self.running.is_some() || !self.waiting.is_empty();
        if runs && policy == SecondPrompt::Refuse {
            return Err(Refusal::Busy);
        }
        // Those that it replaces leave the queue.
        let (waiting, bytes) = match policy {
            SecondPrompt::Replace => (0, 0),
            _ => (self.waiting.len(), self.bytes),
        };
        let bytes = bytes + prompt.bytes;
        if busy && (waiting >= limits.queued_prompts || bytes > limits.queued_prompt_bytes) {
            return Err(Refusal::QueueFull);
        }
        self.bytes = bytes;
        if let Some(named) = NamedPrompt::of(&prompt) {
            self.named.add(named);
        }
        self.waiting.push_back(prompt);
        Ok(!is_opening && !std::mem::replace(&mut self.has_runner, true))
    }

    /// Keeps a prompt in the store that waits, unless it is there already.
    fn keep(
        &mut self,
        progress: &Arc<Progress>,
        appender: &mut Appender<'_>,
        text: Option<String>,
    ) {
        let mut waiting = self.waiting.iter();
        let waiting = waiting.find(|prompt| Arc::ptr_eq(&prompt.progress, progress));
        if let Some(prompt) = waiting.filter(|prompt| prompt.row().is_none()) {
            self.rows += 1;
            prompt.keep(appender, self.rows, text);
        }
    }

    /// Adds a prompt of the store, which was accepted before: no limit refuses it.
    pub(super) fn restore(&mut self, prompt: Prompt, row: u64) {
        self.rows = self.rows.max(row);
        self.bytes += prompt.bytes;
        if let Some(named) = NamedPrompt::of(&prompt) {
            self.named.add(named);
        }
        self.waiting.push_back(prompt);
    }

    /// The session is open; `true` if a runner must be started.
    fn open(&mut self) -> bool {
        self.lifecycle = Lifecycle::Open;
        self.has_runner = !self.waiting.is_empty();
        self.has_runner
    }

    /// Takes the next prompt; `None` ends the runner.
    pub(super) fn pop(&mut self) -> Option<Prompt> {
        (self.running, self.ended) = (None, None);
        let Some(prompt) = self.waiting.pop_front() else {
            self.has_runner = false;
            return None;
        };
        self.bytes -= prompt.bytes;
        self.running = Some(Running {
            turn: None,
            origin: prompt.identity().origin,
            name: prompt.id.clone(),
            progress: prompt.progress.clone(),
            cancel: prompt.cancel.clone(),
        });
        Some(prompt)
    }

    pub(crate) fn started(&mut self, turn: TurnId) {
        if let Some(running) = &mut self.running {
            running.turn = Some(turn);
            self.latest = Some((turn, running.progress.clone()));
            self.turns.started(turn, running.name.clone());
        }
    }

    /// The end of the running turn has its number: a cancellation comes too late.
    pub(crate) fn ended(&mut self, number: u64) {
        self.ended = self.running.take();
        self.last_end = number;
        self.turns.ended(number);
    }

    /// Events after `last` could not be committed.
    pub(super) fn rolled_back(&mut self, last: u64) {
        self.turns.rolled_back(last);
        let is_lost = |turn: &TurnId| turn.0 > last;
        if let Some((_, progress)) = self.latest.take_if(|(turn, _)| is_lost(turn)) {
            progress.set_lost();
        }
        if let Some(running) = &mut self.running {
            running.turn.take_if(|turn| is_lost(turn));
        }
    }

    /// Returns whether the running turn is this one, and its start is an event.
    pub(crate) fn has_started(&self, turn: TurnId) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| running.turn == Some(turn))
    }

    /// The running turn has ended, and is not in the log.
    pub(crate) fn ended_without_start(&mut self) {
        self.ended = self.running.take();
    }

    /// The turn before the running one has an end after all.
    pub(crate) fn earlier_ended(&mut self, number: u64) {
        self.turns.ended(number);
    }

    /// Returns the latest turn if it has no end. Between two turns: the end could not be committed.
    pub(crate) fn without_end(&self) -> Option<TurnId> {
        self.turns.without_end()
    }

    /// Returns the turn that an event belongs to, if it is one of the latest.
    pub(crate) fn turn_at(&self, number: u64) -> Option<TurnEvents> {
        self.turns.at(number)
    }

    /// Returns the number with which the last turn ended; 0 if none has.
    pub(crate) fn last_end(&self) -> u64 {
        self.last_end
    }

    /// Returns the progress of a prompt, by its name.
    pub(crate) fn progress_of(&self, name: &str) -> Option<Arc<Progress>> {
        self.named.find(name).map(|named| named.progress.clone())
    }

    /// Returns the prompt whose turn takes input: the running one, or the one that begins next.
    pub(super) fn steered(&self) -> Option<(&Arc<Progress>, &CancellationToken)> {
        match &self.running {
            Some(running) => Some((&running.progress, &running.cancel)),
            None => {
                let next = self.waiting.front()?;
                Some((&next.progress, &next.cancel))
            }
        }
    }

    /// Returns the turns that may have input that is not answered.
    pub(super) fn with_input(&self) -> impl Iterator<Item = (&Arc<Progress>, &CancellationToken)> {
        let ended = self.ended.as_ref();
        let ended = ended.map(|ended| (&ended.progress, &ended.cancel));
        ended.into_iter().chain(self.steered())
    }

    pub(super) fn delivered(&mut self) -> &mut Delivered {
        &mut self.delivered
    }

    pub(super) fn named(&self) -> &NamedPrompts {
        &self.named
    }

    pub(super) fn named_mut(&mut self) -> &mut NamedPrompts {
        &mut self.named
    }

    /// Closes the queue when it has no runner any more; returns the prompts that wait.
    pub(super) fn abort(&mut self) -> VecDeque<Prompt> {
        for turn in [self.running.take(), self.ended.take()]
            .into_iter()
            .flatten()
        {
            turn.progress.inbox.abandon();
            if let Some(kept) = turn.progress.kept.get() {
                kept.ended(Some(&HandlerError::internal("its task has panicked")));
            }
        }
        self.has_runner = false;
        self.lifecycle = Lifecycle::Closed;
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn take_idle_waiters(&mut self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.idle)
    }
}

impl Session {
    /// Queues a prompt. Its turn begins in a task.
    pub(crate) fn submit(&self, prompt: Prompt) -> Result<Ticket, Refusal> {
        let (ticket, start) = self.enqueue(prompt)?;
        if start {
            tokio::spawn(super::runner::run(self.clone()));
        }
        Ok(ticket)
    }

    /// Queues a prompt. If no turn runs, its own begins in the task of the caller, who holds no lock
    /// and is at a place where a handler may run.
    pub(crate) fn submit_in_place(&self, prompt: Prompt) -> Result<Ticket, Refusal> {
        let (ticket, start) = self.enqueue(prompt)?;
        if start {
            crate::in_place::begin(super::runner::run(self.clone()));
        }
        Ok(ticket)
    }

    /// Returns whether a runner must be started.
    fn enqueue(&self, prompt: Prompt) -> Result<(Ticket, bool), Refusal> {
        let (ticket, start, replaced) = if !prompt.is_kept() {
            self.enqueue_with(prompt, None)?
        } else {
            // Not under the log's lock, if it can be helped: prompts may be large.
            let waits = self.state().queue.has_runner;
            let text = waits.then(|| prompt.to_text());
            let kept = self.log().append_now(None, |appender| {
                Ok::<_, StoreError>(self.enqueue_with(prompt, Some((appender, text))))
            });
            kept.unwrap_or(Err(Refusal::Closed))?
        };
        if let Some(replaced) = replaced {
            let rows = replaced.notify(&Ok(StopReason::Cancelled));
            self.remove_prompts(rows);
        }
        Ok((ticket, start))
    }

    /// As [`enqueue`](Self::enqueue), for who may have to keep the prompt in the store. Returns the prompts
    /// that it replaces, too.
    fn enqueue_with(
        &self,
        mut prompt: Prompt,
        keeping: Option<(&mut Appender<'_>, Option<String>)>,
    ) -> Result<(Ticket, bool, Option<Cancelled>), Refusal> {
        let ticket = prompt.ticket(self);
        let mut state = self.state();
        let earlier = prompt.name().filter(|_| prompt.is_once);
        let earlier = earlier.and_then(|name| state.queue.named.find(name));
        if let Some(earlier) = earlier
            && !earlier.progress.has_failed_without_turn()
        {
            if !earlier.has_content_of(&prompt) {
                return Err(Refusal::OtherContent);
            }
            let earlier = earlier.ticket(self);
            if let Some((appender, _)) = keeping {
                // Its sender may not have asked for that.
                state.queue.keep(&earlier.progress, appender, None);
            }
            return Ok((earlier, false, None));
        }
        if self.core().draining.load(Ordering::Acquire) {
            return Err(Refusal::Draining);
        }
        let policy = state.policies.second_prompt;
        let start = state.queue.push(prompt, &self.core().limits, policy)?;
        if let Some((appender, text)) = keeping
            && !start
        {
            state.queue.keep(&ticket.progress, appender, text);
        }
        let replaced = (policy == SecondPrompt::Replace).then(|| {
            let is_other = |old: Identity<'_>| !Arc::ptr_eq(old.progress, &ticket.progress);
            state.queue.cancel(is_other)
        });
        Ok((ticket, start, replaced))
    }

    /// The session is open: what waits begins.
    pub(crate) fn opened(&self, handler_state: HandlerState) {
        let start = {
            let mut state = self.state();
            state.handler_state = Some(handler_state);
            state.queue.open()
        };
        if start {
            tokio::spawn(super::runner::run(self.clone()));
        }
    }

    /// The session could not be opened, unless it is: what waits fails.
    pub(crate) fn not_opened(&self) {
        let prompts = {
            let mut state = self.state();
            if state.queue.lifecycle != Lifecycle::Opening {
                return;
            }
            state.queue.abort()
        };
        for prompt in prompts {
            let reason = format!("session {} could not be opened", self.id());
            prompt.end(TurnResult::failed(reason));
        }
        self.set_closed();
    }

    /// Cancels the running turn and all queued prompts, whoever sent them. Without any, does nothing.
    pub fn cancel(&self) {
        self.cancel_if(|_| true);
    }

    /// Cancels the running turn, and the queued prompts that no client sent. Those of clients stay in the
    /// queue. Without any, does nothing.
    pub fn cancel_turn(&self) {
        self.cancel_running_and(None);
    }

    /// Cancels the running turn, and the queued prompts of a client or of none.
    pub(crate) fn cancel_running_and(&self, origin: Option<ClientId>) {
        self.cancel_if(|prompt| prompt.is_running || prompt.origin == origin);
    }

    /// Cancels the prompts of a client, or those that no client sent.
    pub(crate) fn cancel_prompts_of(&self, origin: Option<ClientId>) {
        self.cancel_if(|prompt| prompt.origin == origin);
    }

    pub(super) fn cancel_if(&self, is_meant: impl Fn(Identity<'_>) -> bool) {
        let cancelled = self.state().queue.cancel(is_meant);
        let rows = cancelled.notify(&self.stop_of_waiting());
        self.remove_prompts(rows);
    }

    /// Returns the answer to prompts that will have no turn.
    fn stop_of_waiting(&self) -> HandlerResult<StopReason> {
        match self.log().ended() {
            // Nobody has cancelled them: the session cannot be used any more.
            Some(error) => Err(crate::Error::Store(error).into()),
            None => Ok(StopReason::Cancelled),
        }
    }

    /// Refuses further prompts, cancels all, and waits until no turn runs. Prompts in the store stay there.
    pub(crate) async fn stop(&self) {
        let cancelled = {
            let mut state = self.state();
            state.queue.lifecycle = Lifecycle::Closed;
            state.queue.cancel(|_| true)
        };
        // Who opens the session next runs them.
        let _ = cancelled.notify(&self.stop_of_waiting());
        self.idle().await;
    }

    /// Waits until no turn runs.
    pub(crate) async fn idle(&self) {
        let waiting = {
            let mut state = self.state();
            if !state.queue.has_runner {
                return;
            }
            let (sender, waiting) = oneshot::channel();
            state.queue.idle.push(sender);
            waiting
        };
        // The runner sends it, or has gone with the runtime.
        let _ = waiting.await;
    }
}
