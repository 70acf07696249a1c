//! Input that the user gives the running turn.
//!
//! It waits in the [`Inbox`] of the turn until the handler takes it. Then it is an event, which is committed
//! before the handler has it and before its sender is answered. A turn that ends answers what it has not
//! taken: as refused, or as a prompt, whatever its sender wants.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::Meta;
use acp_sdk::extensions::{SteerOutcome, SteerRefusal};
use acp_sdk::v1::{ContentBlock, MessageId};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::Prompter;
use super::prompt::Progress;
use crate::Limits;
use crate::connection::{Barrier, check};
use crate::log::Epoch;
use crate::store::StoreError;

/// What the user says while a turn runs: [`Session::steer`](crate::Session::steer) sends it,
/// [`Turn::steered`](crate::Turn::steered) receives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) meta: Option<Meta>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) queues: bool,
}

impl Input {
    /// Creates input from its content.
    pub fn new(blocks: impl Into<Vec<ContentBlock>>) -> Self {
        Self {
            blocks: blocks.into(),
            ..Self::default()
        }
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.meta = meta.into();
        self
    }

    /// Sets a name of at most 128 bytes. Input that is sent again with its name is delivered once.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Makes the input a prompt if no turn takes it, behind those that wait. A turn that was cancelled
    /// refuses it all the same.
    #[must_use]
    pub fn or_queue(mut self) -> Self {
        self.queues = true;
        self
    }

    /// Returns the content.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.blocks
    }

    /// Returns the text blocks, with line feeds between them.
    #[must_use]
    pub fn text(&self) -> String {
        crate::turn::text_of(&self.blocks)
    }

    /// Returns `_meta`, such as a trace context.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Returns the name that its sender has given it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl Input {
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(check::size).sum()
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::new(vec![text.into()])
    }
}

/// What happened to input: the answer to its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steered {
    /// The turn has it, and it is part of the conversation.
    Injected {
        /// The message that contains it.
        message: MessageId,
        /// The number of the last event of the message.
        event: u64,
    },
    /// It is a prompt that waits for its turn, because its sender asked for that.
    Queued,
    /// It was not used.
    Refused(SteerRefusal),
}

impl Steered {
    /// Returns the outcome as it is on the wire.
    #[must_use]
    pub fn outcome(&self) -> SteerOutcome {
        match self {
            Self::Injected { .. } => SteerOutcome::Injected,
            Self::Queued => SteerOutcome::Queued,
            Self::Refused(_) => SteerOutcome::Refused,
        }
    }
}

/// The answer to whoever sent input.
pub(crate) struct Settled {
    pub(crate) steered: Steered,
    /// Holds the events after the message until its sender is answered.
    pub(crate) barrier: Option<Barrier>,
}

impl From<Steered> for Settled {
    fn from(steered: Steered) -> Self {
        Self {
            steered,
            barrier: None,
        }
    }
}

type Answer = Result<Settled, StoreError>;

/// Input in an inbox.
pub(crate) struct Item {
    pub(crate) input: Input,
    pub(crate) origin: Option<Prompter>,
    /// Unique in its inbox.
    pub(crate) id: u64,
}

/// Those that wait for the answer to one item: further ones have sent it again with its name.
#[derive(Default)]
pub(super) struct Senders {
    name: Option<Arc<str>>,
    waiting: Vec<oneshot::Sender<Answer>>,
}

impl Senders {
    /// Answers all. Not to be called with a lock: whoever wakes up may want it.
    pub(super) fn answer(self, answer: Answer) {
        let mut barrier = None;
        let steered = answer.map(|settled| {
            barrier = settled.barrier;
            settled.steered
        });
        for sender in self.waiting {
            let barrier = barrier.take();
            let settled = |steered| Settled { steered, barrier };
            // The receiver may have been dropped.
            let _ = sender.send(steered.clone().map(settled));
        }
    }
}

/// Input that is in the log and may not be committed yet.
pub(crate) struct Logged {
    pub(crate) item: Item,
    pub(crate) epoch: Epoch,
    pub(crate) message: MessageId,
    pub(crate) last_event: u64,
}

/// The input of one turn.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// Notified of each new item.
    pub(crate) added: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Item>,
    logged: VecDeque<Logged>,
    /// By the id of their item, until it is answered: also while the turn has it in hand.
    senders: BTreeMap<u64, Senders>,
    ids: u64,
    closed: bool,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Inbox")
            .field("waiting", &state.waiting.len())
            .field("logged", &state.logged.len())
            .finish_non_exhaustive()
    }
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds whoever sends input again that is not answered.
    fn join(&self, name: &str) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let mut state = self.state();
        let mut all = state.senders.iter_mut();
        let (id, senders) = all.find(|(_, senders)| senders.name.as_deref() == Some(name))?;
        let (sender, receiver) = oneshot::channel();
        senders.waiting.push(sender);
        Some((*id, receiver))
    }

    /// Adds input.
    ///
    /// # Errors
    ///
    /// The refusal, and the input.
    fn add(
        &self,
        input: Input,
        origin: Option<Prompter>,
        limits: &Limits,
    ) -> Result<(u64, oneshot::Receiver<Answer>), NotGiven> {
        let mut state = self.state();
        let waiting = state.waiting.iter().map(|item| item.input.bytes());
        let bytes = waiting.sum::<usize>() + input.bytes();
        let refusal = match state.waiting.len() {
            _ if state.closed => Some(SteerRefusal::NoTurn),
            waiting if waiting >= limits.queued_prompts => Some(SteerRefusal::Limit),
            _ if bytes > limits.queued_prompt_bytes => Some(SteerRefusal::Limit),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return Err((refusal, input, origin));
        }
        state.ids += 1;
        let (sender, receiver) = oneshot::channel();
        let (id, senders) = (
            state.ids,
            Senders {
                name: input.name.clone(),
                waiting: vec![sender],
            },
        );
        state.senders.insert(id, senders);
        state.waiting.push_back(Item { input, origin, id });
        drop(state);
        self.added.notify_one();
        Ok((id, receiver))
    }

    /// Takes the next item, unless one is in the log and was not delivered yet.
    pub(crate) fn take_unlogged(&self) -> Option<Item> {
        let mut state = self.state();
        match state.logged.is_empty() {
            true => state.waiting.pop_front(),
            false => None,
        }
    }

    /// Puts an item back that nobody used. In a turn that has ended it is answered so.
    pub(crate) fn put_back(&self, item: Item) {
        let mut state = self.state();
        if state.closed {
            drop(state);
            self.forget(item.id);
        } else {
            state.waiting.push_front(item);
            drop(state);
            self.added.notify_one();
        }
    }

    /// Answers an item, which is gone, as one of a turn that has ended.
    pub(crate) fn forget(&self, id: u64) {
        drop(self.take_senders(id));
    }

    /// Takes those that wait for the answer to an item, which is answered now.
    pub(super) fn take_senders(&self, id: u64) -> Senders {
        self.state().senders.remove(&id).unwrap_or_default()
    }

    pub(crate) fn log(&self, logged: Logged) {
        self.state().logged.push_back(logged);
    }

    /// Takes the next item that is in the log.
    pub(crate) fn take_logged(&self) -> Option<Logged> {
        self.state().logged.pop_front()
    }

    /// Returns whether nothing waits and nothing in the log is to be delivered.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state();
        state.waiting.is_empty() && state.logged.is_empty()
    }

    pub(crate) fn has_logged(&self) -> bool {
        !self.state().logged.is_empty()
    }

    /// Ends the inbox of a turn that never ran, or that nobody knows how to end: what is left is answered as
    /// input of a turn that has ended, or was cancelled.
    pub(super) fn abandon(&self) {
        drop(self.close());
        let senders = std::mem::take(&mut self.state().senders);
        drop(senders);
    }

    /// Ends the inbox with its turn; returns what is left.
    pub(super) fn close(&self) -> (VecDeque<Logged>, VecDeque<Item>) {
        let mut state = self.state();
        state.closed = true;
        (
            std::mem::take(&mut state.logged),
            std::mem::take(&mut state.waiting),
        )
    }
}

/// A refusal, and the input with whoever sent it.
pub(super) type NotGiven = (SteerRefusal, Input, Option<Prompter>);

/// Input that was given to a turn. Dropped, it is taken back unless the turn has it.
pub(crate) struct Given {
    progress: Arc<Progress>,
    cancel: CancellationToken,
    /// Of the item.
    id: u64,
    answer: oneshot::Receiver<Answer>,
}

impl Drop for Given {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl Given {
    /// Gives input to a turn.
    ///
    /// # Errors
    ///
    /// As [`Inbox::add`].
    pub(super) fn new(
        (progress, cancel): (&Arc<Progress>, &CancellationToken),
        input: Input,
        origin: Option<Prompter>,
        limits: &Limits,
    ) -> Result<Self, NotGiven> {
        if cancel.is_cancelled() {
            return Err((SteerRefusal::Cancelled, input, origin));
        }
        let answer = progress.inbox.add(input, origin, limits)?;
        Ok(Self::of(progress, cancel, answer))
    }

    /// Waits for input that was sent before with this name.
    pub(super) fn again(
        progress: &Arc<Progress>,
        cancel: &CancellationToken,
        name: &str,
    ) -> Option<Self> {
        let answer = progress.inbox.join(name)?;
        Some(Self::of(progress, cancel, answer))
    }

    fn of(
        progress: &Arc<Progress>,
        cancel: &CancellationToken,
        (id, answer): (u64, oneshot::Receiver<Answer>),
    ) -> Self {
        Self {
            id,
            progress: progress.clone(),
            cancel: cancel.clone(),
            answer,
        }
    }

    /// Waits for the answer. Can be dropped and called again.
    ///
    /// # Errors
    ///
    /// The store's, if the turn has taken it and it could not be committed.
    pub(crate) async fn settled(&mut self) -> Result<Settled, StoreError> {
        let cancelled = self.cancel.clone();
        tokio::select! {
            biased;
            answer = &mut self.answer => return self.read(answer),
            () = cancelled.cancelled() => {}
        }
        if self.take_back() {
            return Ok(Steered::Refused(SteerRefusal::Cancelled).into());
        }
        let answer = (&mut self.answer).await;
        self.read(answer)
    }

    /// Takes the input back; `false` if the turn has it, or it is answered.
    pub(crate) fn take_back(&mut self) -> bool {
        let mut state = self.progress.inbox.state();
        let of_self = state.waiting.iter().position(|item| item.id == self.id);
        let Some(at) = of_self.filter(|_| !self.answer.is_terminated()) else {
            return false;
        };
        self.answer.close();
        let abandoned = state.senders.get_mut(&self.id).is_none_or(|senders| {
            senders.waiting.retain(|sender| !sender.is_closed());
            senders.waiting.is_empty()
        });
        if abandoned {
            let abandoned = (state.senders.remove(&self.id), state.waiting.remove(at));
            drop(state);
            drop(abandoned);
        }
        true
    }

    /// An item that is dropped without an answer was in a turn that has ended.
    fn read(&self, answer: Result<Answer, oneshot::error::RecvError>) -> Answer {
        answer.unwrap_or_else(|_| {
            let refusal = match self.cancel.is_cancelled() {
                true => SteerRefusal::Cancelled,
                false => SteerRefusal::TurnEnded,
            };
            Ok(Steered::Refused(refusal).into())
        })
    }
}
