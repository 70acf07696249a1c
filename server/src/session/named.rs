//! Prompts with a name: a sender that has lost an answer finds its prompt again, and one that is sent
//! again runs once. The latest are remembered, and read from the log when a session is in memory
//! again.

use std::collections::VecDeque;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, LazyLock};

use acp_sdk::v1::{ContentBlock, MessageId, SessionUpdate, StopReason};
use acp_sdk::{HandlerError, Json};
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use super::prompt::{Inserted, Progress, Prompt, PromptEnd, Ticket};
use super::steering::delivered_input;
use super::{PromptHandle, ReceivedText, Refusal, Session};
use crate::Result;
use crate::event::{EventBody, EventKind, TokenUsage, TurnEvent, TurnId};

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
    /// The hash of its blocks.
    content: u64,
}

/// A hash of the blocks of a prompt, in this process: the log has the blocks.
#[derive(Clone)]
pub(super) struct ContentHash(DefaultHasher);

impl Default for ContentHash {
    fn default() -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYS.build_hasher())
    }
}

impl ContentHash {
    fn add(&mut self, block: &ContentBlock) {
        let text = serde_json::to_string(block).unwrap_or_default();
        self.0.write(text.as_bytes());
        self.0.write_u8(0xff);
    }

    pub(super) fn of(blocks: &[ContentBlock]) -> u64 {
        let mut hash = Self::default();
        blocks.iter().for_each(|block| hash.add(block));
        hash.0.finish()
    }
}

impl NamedPrompt {
    pub(super) fn of(prompt: &Prompt) -> Option<Self> {
        Some(Self {
            name: prompt.id.clone()?,
            message: prompt.message.clone(),
            progress: prompt.progress.clone(),
            cancel: prompt.cancel.clone(),
            content: prompt.content,
        })
    }

    /// Returns whether a prompt has the same blocks.
    pub(super) fn has_content_of(&self, prompt: &Prompt) -> bool {
        self.content == prompt.content
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
    /// The last event that was copied from another session, whose prompts are not those of this one.
    copied: u64,
}

impl NamedPrompts {
    pub(super) fn new(copied: u64) -> Self {
        Self {
            copied,
            ..Self::default()
        }
    }

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
    /// even after a restart, this returns a handle of the first one. The names are the idempotency keys of
    /// clients, too.
    ///
    /// A session remembers the latest 256 names, and of the time before it was opened those of its
    /// latest 16,384 events. A name has 1 to 128 bytes. A fork has no name of its source.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt), also for a known name with other content, and
    /// [`Error::Store`](crate::Error::Store) when the log cannot be read.
    pub async fn prompt_once(
        &self,
        name: &str,
        prompt: impl Into<Vec<ContentBlock>>,
    ) -> Result<PromptHandle> {
        self.recall_names().await?;
        let refused = |refusal: Refusal| refusal.error(self);
        self.try_prompt_once(name, prompt, None).map_err(refused)
    }

    /// As [`prompt_once`](Self::prompt_once) after [`recall_names`](Self::recall_names), with the
    /// reason as a value.
    #[doc(hidden)]
    pub fn try_prompt_once(
        &self,
        name: &str,
        prompt: impl Into<Vec<ContentBlock>>,
        meta: Option<acp_sdk::Meta>,
    ) -> Result<PromptHandle, Refusal> {
        let message = MessageId::from(self.next_id("message"));
        let prompt = Prompt::new(prompt.into(), meta, None).with_message(message);
        self.submit_once(name, prompt)
    }

    /// Queues a prompt under a name, or finds the one that was sent before with it.
    pub(super) fn submit_once(&self, name: &str, prompt: Prompt) -> Result<PromptHandle, Refusal> {
        let ticket = self.submit(prompt.once_as(name)?)?;
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

    /// Returns the right to queue or cancel prompts of clients, in the order of their arrival: a name may
    /// have to be read from the log first.
    ///
    /// # Errors
    ///
    /// The store's, if the prompt has a name.
    pub(crate) async fn in_order(&self, has_name: bool) -> Result<MutexGuard<'_, ()>> {
        let turn = match self.0.order.try_lock() {
            Ok(turn) => turn,
            Err(_) => self.0.order.lock().await,
        };
        if has_name && !self.state().queue.named().is_recalled {
            // Boxed, because it is rare, and every prompt has room for it otherwise.
            Box::pin(self.recall_names()).await?;
        }
        Ok(turn)
    }

    /// Reads the names of prompts from the log, once.
    ///
    /// # Errors
    ///
    /// The store's.
    #[doc(hidden)]
    pub async fn recall_names(&self) -> Result<()> {
        let copied = {
            let state = self.state();
            let named = state.queue.named();
            if named.is_recalled {
                return Ok(());
            }
            named.copied
        };
        let last = self.last_event();
        let mut events = self.subscribe(last.saturating_sub(RECALLED_EVENTS).max(copied));
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
                        open.said(&chunk.content, chunk.message_id);
                    }
                }
                EventBody::Turn(TurnEvent::TurnEnded {
                    stop_reason,
                    error,
                    usage,
                    ..
                }) => {
                    let stop = stop_reason.ok_or(error.unwrap_or_default());
                    let ended = open.take().and_then(|open| open.ended(stop, usage, number));
                    found.extend(ended);
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
    content: ContentHash,
}

impl Recalled {
    fn new(turn: TurnId, name: &str) -> Self {
        Self {
            turn,
            name: name.into(),
            message: None,
            content: ContentHash::default(),
        }
    }

    /// Adds a block of the user: of the prompt, or of a later message.
    fn said(&mut self, block: &ContentBlock, message: Option<MessageId>) {
        if self.message.is_none() {
            self.message.clone_from(&message);
        }
        if self.message == message {
            self.content.add(block);
        }
    }

    /// Returns the prompt, which has ended with the event `last`.
    fn ended(
        self,
        stop: Result<StopReason, String>,
        usage: Option<TokenUsage>,
        last: u64,
    ) -> Option<NamedPrompt> {
        let message = self.message?;
        let progress = Progress::default();
        let inserted = Inserted {
            turn: self.turn,
            message: message.clone(),
            last_event: self.turn.0,
        };
        let end = PromptEnd {
            stop: stop.map_err(HandlerError::internal),
            members: usage.map(|usage| Json::from(serde_json::json!({ "usage": usage }))),
            last_event: last,
        };
        // It is new.
        let _ = (progress.inserted.set(inserted), progress.end.set(end));
        Some(NamedPrompt {
            name: self.name,
            message: Some(message),
            progress: Arc::new(progress),
            cancel: CancellationToken::new(),
            content: self.content.0.finish(),
        })
    }
}
