//! Input for the running turn: given to it, and answered.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::extensions::SteerRefusal;
use acp_sdk::v1::{ContentChunk, MessageId};

use super::input::{Given, Inbox, Input, Item, Logged, Settled, Steered};
use super::named::NAMES;
use super::prompt::{Prompt, Prompter, Ticket, is_name};
use super::{Refusal, Session};
use crate::{Error, Result};

/// What became of input that was sent.
pub(crate) enum Steering {
    /// It is answered.
    Settled(Settled),
    /// A turn may take it.
    Given(Given),
    /// It is a prompt, and the store may not have it yet.
    Queued(Ticket),
}

impl Steering {
    /// Waits for the answer. Can be dropped and called again.
    ///
    /// # Errors
    ///
    /// The store's, if the turn has taken it and it could not be committed.
    pub(crate) async fn settled(self) -> Result<Settled> {
        match self {
            Self::Settled(settled) => Ok(settled),
            Self::Given(mut given) => given.settled().await.map_err(Error::Store),
            Self::Queued(ticket) => {
                ticket.stored().await?;
                Ok(Steered::Queued.into())
            }
        }
    }
}

impl Session {
    /// Gives the running turn further input of the user, and waits until it has taken it or has ended.
    /// Dropping the future takes the input back, unless the turn has it.
    ///
    /// A turn takes input if its handler calls [`Turn::steered`](crate::Turn::steered). As much waits as
    /// [`Limits`](crate::Limits) permits prompts to wait.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt), and [`Error::Store`](crate::Error::Store) when the log cannot be read
    /// or written.
    pub async fn steer(&self, input: impl Into<Input>) -> Result<Steered> {
        let input = input.into();
        if input.name.is_some() {
            self.recall_names().await?;
        }
        let steering = self.give(input, None);
        let steering = steering.map_err(|refusal| refusal.error(self))?;
        Ok(steering.settled().await?.steered)
    }

    /// As [`steer`](Self::steer) after [`recall_names`](Self::recall_names), with the reason of a refusal
    /// as a value.
    #[doc(hidden)]
    pub async fn try_steer(&self, input: Input) -> Result<Result<Steered>, Refusal> {
        let settled = self.give(input, None)?.settled().await;
        Ok(settled.map(|settled| settled.steered))
    }

    /// Gives input to the running turn, or to the one that begins next.
    ///
    /// # Errors
    ///
    /// As for a prompt.
    pub(crate) fn give(&self, input: Input, origin: Option<Prompter>) -> Result<Steering, Refusal> {
        if input.name().is_some_and(|name| !is_name(name)) {
            return Err(Refusal::NameLength);
        }
        let limits = &self.core().limits;
        let (refusal, input, origin) = {
            let mut state = self.state();
            if let Some(known) = input.name().and_then(|name| state.queue.input(name, self)) {
                return Ok(known);
            }
            if state.queue.is_closed() {
                return Err(Refusal::Closed);
            }
            if input.bytes() > limits.prompt_bytes {
                return Err(Refusal::TooLarge);
            }
            match state.queue.steered() {
                _ if !self.core().info.steering => (SteerRefusal::NotSupported, input, origin),
                None => (SteerRefusal::NoTurn, input, origin),
                Some(turn) => match Given::new(turn, input, origin, limits) {
                    Ok(given) => return Ok(Steering::Given(given)),
                    Err(not_given) => not_given,
                },
            }
        };
        let is_final = matches!(refusal, SteerRefusal::Cancelled | SteerRefusal::Limit);
        if is_final || !input.queues {
            return Ok(Steering::Settled(Steered::Refused(refusal).into()));
        }
        match self.queue_input(input, origin) {
            Ok(ticket) => Ok(Steering::Queued(ticket)),
            Err(Refusal::QueueFull) => {
                let refused = Steered::Refused(SteerRefusal::Limit);
                Ok(Steering::Settled(refused.into()))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Makes input a prompt. Nobody sends it again once its sender is answered, so it outlives the process.
    fn queue_input(&self, input: Input, origin: Option<Prompter>) -> Result<Ticket, Refusal> {
        let prompt = Prompt::new(input.blocks, input.meta, origin).kept();
        let prompt = match &input.name {
            Some(name) => prompt.once_as(name)?,
            None => prompt,
        };
        self.submit(prompt)
    }

    /// Answers what the turn of a prompt has left, which has ended.
    pub(super) fn settle_inputs(&self, prompt: &Prompt) {
        let (logged, waiting) = prompt.progress.inbox.close();
        for logged in logged {
            // Nothing has failed since then, and the end of the turn was committed.
            match self.log().check(logged.epoch) {
                Ok(()) => drop(self.settle_logged(&prompt.progress.inbox, logged)),
                Err(error) => {
                    let senders = prompt.progress.inbox.take_senders(logged.item.id);
                    senders.answer(Err(error));
                }
            }
        }
        let refusal = match prompt.cancel.is_cancelled() {
            true => SteerRefusal::Cancelled,
            false => SteerRefusal::TurnEnded,
        };
        for item in waiting {
            self.settle_unused(&prompt.progress.inbox, item, refusal.clone());
        }
    }

    /// Answers input that is committed, and returns it.
    pub(crate) fn settle_logged(&self, inbox: &Inbox, logged: Logged) -> Input {
        let Logged {
            item,
            message,
            last_event,
            ..
        } = logged;
        let senders = {
            // Whoever sends it again finds it either here or there.
            let mut state = self.state();
            if let Some(name) = &item.input.name {
                let delivered = (name.clone(), message.clone(), last_event);
                state.queue.delivered().add(delivered);
            }
            inbox.take_senders(item.id)
        };
        let origin = item.origin.as_ref();
        let barrier = origin.map(|origin| origin.subscription.barrier(last_event));
        let steered = Steered::Injected {
            message,
            event: last_event,
        };
        senders.answer(Ok(Settled { steered, barrier }));
        item.input
    }

    /// Answers input that no turn has taken.
    pub(crate) fn settle_unused(&self, inbox: &Inbox, item: Item, refusal: SteerRefusal) {
        let id = item.id;
        let mut steered = Steered::Refused(refusal.clone());
        if item.input.queues && refusal != SteerRefusal::Cancelled {
            steered = match self.queue_input(item.input, item.origin) {
                Ok(ticket) => {
                    let senders = inbox.take_senders(id);
                    // The turn that has ended does not wait for it.
                    tokio::spawn(async move {
                        let stored = ticket.stored().await;
                        senders.answer(match stored {
                            Err(Error::Store(error)) => Err(error),
                            _ => Ok(Steered::Queued.into()),
                        });
                    });
                    return;
                }
                Err(Refusal::QueueFull) => Steered::Refused(SteerRefusal::Limit),
                Err(_) => steered,
            };
        }
        inbox.take_senders(id).answer(Ok(steered.into()));
    }
}

impl super::queue::Queue {
    /// Returns what became of input that was sent before with this name.
    fn input(&mut self, name: &str, session: &Session) -> Option<Steering> {
        if let Some((_, message, event)) = self.delivered().find(name) {
            let steered = Steered::Injected {
                message: message.clone(),
                event: *event,
            };
            return Some(Steering::Settled(steered.into()));
        }
        let mut turns = self.with_input();
        let given = turns.find_map(|(progress, cancel)| Given::again(progress, cancel, name));
        drop(turns);
        if let Some(given) = given {
            return Some(Steering::Given(given));
        }
        let named = self.named().find(name)?;
        let is_queued = !named.progress.has_failed_without_turn();
        is_queued.then(|| Steering::Queued(named.ticket(session)))
    }
}

/// Input that a turn has taken: its name, its message and the last event of that.
type DeliveredInput = (Arc<str>, MessageId, u64);

/// The latest input with a name that turns have taken, the oldest first.
#[derive(Default)]
pub(super) struct Delivered(VecDeque<DeliveredInput>);

impl Delivered {
    fn add(&mut self, input: DeliveredInput) {
        if self.0.len() >= NAMES {
            self.0.pop_front();
        }
        self.0.push_back(input);
    }

    fn find(&self, name: &str) -> Option<&DeliveredInput> {
        self.0.iter().rev().find(|(known, ..)| **known == *name)
    }

    /// Adds input of the log, the oldest first, except what is known.
    pub(super) fn recall(&mut self, oldest_first: Vec<DeliveredInput>) {
        for input in oldest_first.into_iter().rev() {
            match self.find(&input.0) {
                // An earlier event of the same message.
                Some(_) => {}
                None if self.0.len() < NAMES => self.0.push_front(input),
                None => return,
            }
        }
    }
}

/// Returns the input with a name that a message of the log has.
pub(super) fn delivered_input(chunk: &ContentChunk, number: u64) -> Option<DeliveredInput> {
    let ours: serde_json::Value = chunk.meta.as_ref()?.get("acp-sdk")?;
    let name = ours["promptId"]
        .as_str()
        .filter(|_| ours["steered"] == true)?;
    Some((name.into(), chunk.message_id.clone()?, number))
}
