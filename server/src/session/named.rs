//! Prompts with a name: a sender that has lost an answer finds its prompt again, and one that is sent
//! again runs once. The latest are remembered, and read from the log when a session is in memory
//! again.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::HandlerError;
use acp_sdk::v1::{ContentBlock, MessageId, SessionUpdate, StopReason};
use tokio_util::sync::CancellationToken;

use super::prompt::{Inserted, LONGEST_NAME, Progress, Prompt, PromptEnd, Ticket};
use super::steering::delivered_input;
use super::{PromptHandle, ReceivedText, Refusal, Session};
use crate::Result;
use crate::event::{EventBody, EventKind, TurnEvent, TurnId};

/// Names that a session remembers.
pub(super) const NAMES: usize = 256;

/// Events of an earlier time in memory in which names are looked for.
const RECALLED_EVENTS: u64 = 16 << 10;

/// A prompt with a name.
#[derive(Clone)]
pub(super) struct NamedPrompt {
    name: Arc<str>,
    /// The id of the user's message, if it is known before the turn begins.
    message: Option<MessageId>,
    pub(super) progress: Arc<Progress>,
    cancel: CancellationToken,
}

impl NamedPrompt {
    pub(super) fn of(prompt: &Prompt) -> Option<Self> {
        Some(Self {
            name: prompt.id.clone()?,
            message: prompt.message.clone(),
            progress: prompt.progress.clone(),
            cancel: prompt.cancel.clone(),
        })
    }

    /// Returns a further ticket for the prompt.
    pub(super) fn ticket(&self, session: &Session) -> Ticket {
        Ticket {
            session: session.downgrade(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            result: None,
        }
    }
}

/// The latest prompts with a name, the oldest first.
#[derive(Default)]
pub(super) struct NamedPrompts {
    prompts: VecDeque<NamedPrompt>,
    /// Whether those of the log are among them.
    is_recalled: bool,
}

impl NamedPrompts {
    pub(super) fn add(&mut self, prompt: NamedPrompt) {
        if self.prompts.len() >= NAMES {
            self.prompts.pop_front();
        }
        self.prompts.push_back(prompt);
    }

    pub(super) fn find(&self, name: &str) -> Option<&NamedPrompt> {
        self.prompts
            .iter()
            .rev()
            .find(|prompt| *prompt.name == *name)
    }

    /// Adds prompts of the log, the latest first, except those that are known.
    fn recall(&mut self, latest_first: impl Iterator<Item = NamedPrompt>) {
        for prompt in latest_first {
            if self.prompts.len() < NAMES && self.find(&prompt.name).is_none() {
                self.prompts.push_front(prompt);
            }
        }
        self.is_recalled = true;
    }
}

impl Session {
    /// As [`prompt`](Self::prompt), but a prompt with the same name runs once: when it is sent again,
    /// even after a restart, this returns a handle of the first one, whatever its content is.
    ///
    /// A session remembers the latest 256 names, and of the time before it was opened those of its
    /// latest 16,384 events. A name has at most 128 bytes.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt), and [`Error::Store`](crate::Error::Store) when the log cannot be read.
    pub async fn prompt_once(
        &self,
        name: &str,
        prompt: impl Into<Vec<ContentBlock>>,
    ) -> Result<PromptHandle> {
        self.recall_names().await?;
        let refused = |refusal: Refusal| refusal.error(self);
        self.try_prompt_once(name, prompt).map_err(refused)
    }

    /// As [`prompt_once`](Self::prompt_once) after [`recall_names`](Self::recall_names), with the
    /// reason as a value.
    #[doc(hidden)]
    pub fn try_prompt_once(
        &self,
        name: &str,
        prompt: impl Into<Vec<ContentBlock>>,
    ) -> Result<PromptHandle, Refusal> {
        if name.len() > LONGEST_NAME {
            return Err(Refusal::LongName);
        }
        let message = MessageId::from(self.next_id("message"));
        let prompt = Prompt::new(prompt.into(), None, None).with_message(message.clone());
        let ticket = self.submit(prompt.once_as(name))?;
        let state = self.state();
        let known = state.queue.named().find(name);
        let inserted = ticket.progress.inserted.get();
        let message = known
            .and_then(|known| known.message.clone())
            .or_else(|| inserted.map(|inserted| inserted.message.clone()));
        // A prompt of a client that waits for its turn has none yet.
        let message = message.ok_or(Refusal::Busy)?;
        Ok(PromptHandle::new(ticket, message))
    }

    /// Reads the names of prompts from the log, once.
    ///
    /// # Errors
    ///
    /// The store's.
    #[doc(hidden)]
    pub async fn recall_names(&self) -> Result<()> {
        if self.state().queue.named().is_recalled {
            return Ok(());
        }
        let last = self.last_event();
        let mut events = self.subscribe(last.saturating_sub(RECALLED_EVENTS));
        let mut found: Vec<NamedPrompt> = Vec::new();
        let mut open: Option<Recalled> = None;
        let mut delivered = Vec::new();
        while let Some(received) = events.next_text_now().await? {
            let ReceivedText::Event(number, batch) = received else {
                continue;
            };
            if number > last {
                break;
            }
            let kinds = [EventKind::Turn, EventKind::UserMessage];
            let Some(stored) = batch
                .stored(number)
                .filter(|event| kinds.contains(&event.kind()))
            else {
                continue;
            };
            match stored.parse().body {
                EventBody::Turn(TurnEvent::TurnStarted { turn, prompt, .. }) => {
                    open = prompt.map(|name| Recalled::new(turn, &name));
                }
                EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) => {
                    delivered.extend(delivered_input(&chunk, number));
                    if let Some(open) = &mut open {
                        open.message = open.message.take().or(chunk.message_id);
                    }
                }
                EventBody::Turn(TurnEvent::TurnEnded {
                    stop_reason, error, ..
                }) => {
                    let stop = stop_reason.ok_or(error.unwrap_or_default());
                    found.extend(open.take().and_then(|open| open.ended(stop, number)));
                }
                _ => {}
            }
            tokio::task::consume_budget().await;
        }
        let latest_first = found.into_iter().rev();
        let mut state = self.state();
        state.queue.named_mut().recall(latest_first);
        state.queue.delivered().recall(delivered);
        Ok(())
    }
}

/// A turn of the log with a name.
struct Recalled {
    turn: TurnId,
    name: Arc<str>,
    message: Option<MessageId>,
}

impl Recalled {
    fn new(turn: TurnId, name: &str) -> Self {
        Self {
            turn,
            name: name.into(),
            message: None,
        }
    }

    /// Returns the prompt, which has ended with the event `last`.
    fn ended(self, stop: Result<StopReason, String>, last: u64) -> Option<NamedPrompt> {
        let message = self.message?;
        let progress = Progress::default();
        let inserted = Inserted {
            turn: self.turn,
            message: message.clone(),
            last_event: self.turn.0,
        };
        let end = PromptEnd {
            stop: stop.map_err(HandlerError::internal),
            members: None,
            last_event: last,
        };
        // It is new.
        let _ = (progress.inserted.set(inserted), progress.end.set(end));
        Some(NamedPrompt {
            name: self.name,
            message: Some(message),
            progress: Arc::new(progress),
            cancel: CancellationToken::new(),
        })
    }
}
