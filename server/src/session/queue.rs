//! The prompts of a session: one runs, the others wait in the order of arrival.
//!
//! A cancellation is for all prompts that have arrived. It never touches a later one, and in an
//! idle session it does nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use acp_sdk::v1::{ContentBlock, MessageId, StopReason};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};
use tokio::sync::{SetOnce, oneshot};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::connection::{Barrier, ClientId, Subscription};
use crate::event::TurnId;
use crate::limits::{Limits, SecondPrompt};
use crate::{Error, connection};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Closed => "closed",
        }
    }
}

/// The client that sent a prompt.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) client: ClientId,
    pub(crate) subscription: Arc<Subscription>,
}

/// A prompt and where its result goes.
pub(crate) struct Prompt {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) meta: Option<Meta>,
    pub(crate) origin: Option<Origin>,
    /// The id of the user's message; `None`: derived from the turn.
    pub(crate) message: Option<MessageId>,
    bytes: usize,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    result: Option<oneshot::Sender<TurnResult>>,
    /// The name that its client has given it.
    id: Option<Box<str>>,
}

/// How far a prompt is, for all that wait for it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Set when the turn is to end at once.
    pub(crate) abort: SetOnce<()>,
    /// Set when the prompt is in the log.
    pub(crate) inserted: SetOnce<Inserted>,
    /// Set when a prompt with a name has ended.
    pub(crate) end: SetOnce<PromptEnd>,
}

/// Prompts with a name whose end is remembered, for each session.
const NAMED_PROMPTS: usize = 256;

/// The longest name of a prompt, in bytes.
const LONGEST_NAME: usize = 128;

/// How a prompt with a name ended, for clients that have lost its answer.
#[derive(Debug)]
pub(crate) struct PromptEnd {
    pub(crate) stop: HandlerResult<StopReason>,
    pub(crate) members: Option<Json>,
    pub(crate) last_event: u64,
}

/// Where a prompt is in the log. Version 2 answers with it, version 1 does not ask.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "v2"), expect(dead_code, reason = "for version 2"))]
pub(crate) struct Inserted {
    /// The id of the user's message.
    pub(crate) message: MessageId,
    /// The number of its last event.
    pub(crate) last_event: u64,
}

/// How a turn ended.
pub(crate) struct TurnResult {
    pub(crate) stop: HandlerResult<StopReason>,
    /// Members of the answer besides the stop reason, an object.
    pub(crate) members: Option<Json>,
    /// The number of the turn's last event; 0 if it never started.
    pub(crate) last_event: u64,
    /// Holds the events of the next turn until the prompt is answered.
    pub(crate) barrier: Option<Barrier>,
}

impl TurnResult {
    /// The result of a prompt that has failed without a turn.
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::without_turn(Err(HandlerError::internal(reason.into())))
    }

    /// The result of a turn that never started.
    pub(crate) fn without_turn(stop: HandlerResult<StopReason>) -> Self {
        Self {
            stop,
            members: None,
            last_event: 0,
            barrier: None,
        }
    }
}

/// Waits for the result of a prompt.
pub(crate) struct Ticket {
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    result: oneshot::Receiver<TurnResult>,
}

impl Ticket {
    pub(crate) async fn result(&mut self) -> TurnResult {
        let result = (&mut self.result).await;
        // Every prompt has a result, except when the runtime drops it with the runner.
        result.unwrap_or_else(|_| TurnResult::failed("the server shut down"))
    }
}

/// A prompt that the program itself queued.
pub struct PromptHandle {
    ticket: Ticket,
    message: MessageId,
}

impl PromptHandle {
    pub(super) fn new(ticket: Ticket, message: MessageId) -> Self {
        Self { ticket, message }
    }

    /// Returns the id of the user's message, which its events will have.
    #[must_use]
    pub fn message_id(&self) -> &MessageId {
        &self.message
    }

    /// Cancels the prompt, whether or not its turn has begun.
    pub fn cancel(&self) {
        self.ticket.cancel.cancel();
    }

    /// Waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// The handler's.
    pub async fn stop_reason(mut self) -> HandlerResult<StopReason> {
        self.ticket.result().await.stop
    }
}

impl std::fmt::Debug for PromptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptHandle")
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl Prompt {
    pub(crate) fn new(
        blocks: Vec<ContentBlock>,
        meta: Option<Meta>,
        origin: Option<Origin>,
    ) -> Self {
        let bytes = blocks.iter().map(connection::check::size).sum();
        let ours: Option<serde_json::Value> = meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
        let id = ours.as_ref().and_then(|ours| ours["promptId"].as_str());
        Self {
            blocks,
            meta,
            origin,
            message: None,
            bytes,
            cancel: CancellationToken::new(),
            progress: Arc::default(),
            result: None,
            id: id.filter(|id| id.len() <= LONGEST_NAME).map(Box::from),
        }
    }

    pub(super) fn with_message(mut self, message: MessageId) -> Self {
        self.message = Some(message);
        self
    }

    /// Sends the result to whoever waits for it.
    pub(super) fn end(mut self, result: TurnResult) {
        if self.id.is_some() {
            // Set once, here.
            let _ = self.progress.end.set(PromptEnd {
                stop: result.stop.clone(),
                members: result.members.clone(),
                last_event: result.last_event,
            });
        }
        if let Some(waiting) = self.result.take() {
            // Whoever waited may be gone.
            let _ = waiting.send(result);
        }
    }
}

/// Why a prompt is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server is about to end.
    Draining,
    Closed,
    QueueFull,
    TooLarge,
    Busy,
}

impl Refusal {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Closed => "it is closed",
            Self::Draining => "the server is about to end",
            Self::QueueFull => "too many prompts are waiting; await an answer first",
            Self::TooLarge => "the prompt is larger than the limit `prompt_bytes`",
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

/// Cancels prompts. Not to be called with the session's lock: whoever wakes up may want it.
pub(super) fn cancel_all(tokens: &[CancellationToken]) {
    for token in tokens {
        token.cancel();
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Prompt>,
    bytes: usize,
    running: Option<Running>,
    last_end: u64,
    /// The latest prompts with a name.
    named: VecDeque<(Box<str>, Arc<Progress>)>,
    /// Whether a runner task exists.
    has_runner: bool,
    closed: bool,
    /// Notified when the runner ends.
    idle: Vec<oneshot::Sender<()>>,
}

/// The running turn.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) turn: Option<TurnId>,
    pub(crate) origin: Option<ClientId>,
    cancel: CancellationToken,
}

impl Queue {
    pub(crate) fn phase(&self) -> Phase {
        match &self.running {
            _ if self.closed => Phase::Closed,
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
        self.closed
    }

    pub(crate) fn has_runner(&self) -> bool {
        self.has_runner
    }

    /// Returns the cancellation of every prompt.
    pub(crate) fn tokens(&self) -> Vec<CancellationToken> {
        let running = self.running.iter().map(|running| running.cancel.clone());
        let waiting = self.waiting.iter().map(|prompt| prompt.cancel.clone());
        running.chain(waiting).collect()
    }

    /// Returns the cancellation of a client's prompts.
    pub(crate) fn tokens_of(&self, client: ClientId) -> Vec<CancellationToken> {
        let running = self.running.iter();
        let running = running.filter(|running| running.origin == Some(client));
        let waiting = self.waiting.iter().filter(|prompt| {
            let origin = prompt.origin.as_ref();
            origin.is_some_and(|origin| origin.client == client)
        });
        let running = running.map(|running| running.cancel.clone());
        running
            .chain(waiting.map(|prompt| prompt.cancel.clone()))
            .collect()
    }

    /// Adds a prompt; `true` if a runner must be started.
    fn push(
        &mut self,
        prompt: Prompt,
        limits: &Limits,
        policy: SecondPrompt,
    ) -> Result<bool, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if prompt.bytes > limits.prompt_bytes {
            return Err(Refusal::TooLarge);
        }
        let busy = self.has_runner;
        // A turn whose end is in the log does not count, although the runner may still hold it: its
        // client may prompt again as soon as it has the answer.
        let runs = self.running.is_some() || !self.waiting.is_empty();
        if runs && policy == SecondPrompt::Refuse {
            return Err(Refusal::Busy);
        }
        let bytes = self.bytes + prompt.bytes;
        if busy
            && (self.waiting.len() >= limits.queued_prompts || bytes > limits.queued_prompt_bytes)
        {
            return Err(Refusal::QueueFull);
        }
        self.bytes = bytes;
        if let Some(id) = &prompt.id {
            if self.named.len() >= NAMED_PROMPTS {
                self.named.pop_front();
            }
            self.named.push_back((id.clone(), prompt.progress.clone()));
        }
        self.waiting.push_back(prompt);
        self.has_runner = true;
        Ok(!busy)
    }

    /// Takes the next prompt; `None` ends the runner.
    pub(super) fn pop(&mut self) -> Option<Prompt> {
        self.running = None;
        let Some(prompt) = self.waiting.pop_front() else {
            self.has_runner = false;
            return None;
        };
        self.bytes -= prompt.bytes;
        self.running = Some(Running {
            turn: None,
            origin: prompt.origin.as_ref().map(|origin| origin.client),
            cancel: prompt.cancel.clone(),
        });
        Some(prompt)
    }

    pub(crate) fn started(&mut self, turn: TurnId) {
        if let Some(running) = &mut self.running {
            running.turn = Some(turn);
        }
    }

    /// The end of the running turn has its number: a cancellation comes too late.
    pub(crate) fn ended(&mut self, number: u64) {
        self.running = None;
        self.last_end = number;
    }

    /// Returns the number with which the last turn ended; 0 if none has.
    pub(crate) fn last_end(&self) -> u64 {
        self.last_end
    }

    /// Returns the progress of a prompt, by its name.
    pub(crate) fn progress_of(&self, id: &str) -> Option<Arc<Progress>> {
        let mut named = self.named.iter().rev();
        let found = named.find(|(name, _)| **name == *id);
        found.map(|(_, progress)| progress.clone())
    }

    /// Closes the queue when its runner has gone; returns the prompts that wait.
    pub(super) fn give_up(&mut self) -> VecDeque<Prompt> {
        (self.running, self.has_runner, self.closed) = (None, false, true);
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn take_idle_waiters(&mut self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.idle)
    }
}

impl Session {
    /// Queues a prompt.
    pub(crate) fn submit(&self, mut prompt: Prompt) -> Result<Ticket, Refusal> {
        let (sender, result) = oneshot::channel();
        prompt.result = Some(sender);
        let ticket = Ticket {
            cancel: prompt.cancel.clone(),
            progress: prompt.progress.clone(),
            result,
        };
        let (start, replaced) = {
            let mut state = self.state();
            if self.core().draining.load(Ordering::Acquire) {
                return Err(Refusal::Draining);
            }
            let policy = state.policies.second_prompt;
            let replaced = match policy {
                SecondPrompt::Replace => state.queue.tokens(),
                _ => Vec::new(),
            };
            let start = state.queue.push(prompt, &self.core().limits, policy)?;
            (start, replaced)
        };
        cancel_all(&replaced);
        if start {
            super::runner::start(self.clone());
        }
        Ok(ticket)
    }

    /// Refuses further prompts, cancels all, and waits until no turn runs.
    pub(crate) async fn stop(&self) {
        self.state().queue.closed = true;
        self.cancel();
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
