//! Prompts, and those that wait for their results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use acp_sdk::v1::{ContentBlock, MessageId, StopReason};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};
use tokio::sync::{SetOnce, oneshot};
use tokio_util::sync::CancellationToken;

use super::input::Inbox;
use super::kept::Kept;
use super::named::ContentHash;
use super::{Refusal, Session, WeakSession};
use crate::connection;
use crate::connection::{Barrier, ClientId, Subscription};
use crate::event::TurnId;

/// The client that sent a prompt.
#[derive(Clone)]
pub(crate) struct Prompter {
    pub(crate) client: ClientId,
    /// Of the client, if it gave one.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) subscription: Arc<Subscription>,
}

/// A prompt and where its result goes.
pub(crate) struct Prompt {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) meta: Option<Meta>,
    pub(crate) origin: Option<Prompter>,
    /// The id of the user's message; `None`: derived from the turn.
    pub(crate) message: Option<MessageId>,
    pub(super) bytes: usize,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    result: Option<oneshot::Sender<TurnResult>>,
    /// The name that its client has given it.
    pub(super) id: Option<Arc<str>>,
    /// The hash of the blocks of one with a name.
    pub(super) content: u64,
    /// Whether it is not to run if one with its name was sent before.
    pub(super) is_once: bool,
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
    /// What the user says in its turn.
    pub(crate) inbox: Inbox,
    /// Set if it outlives its process.
    pub(super) kept: OnceLock<Kept>,
    /// Whether the commit of the prompt has failed.
    lost: AtomicBool,
}

impl Progress {
    /// The commit of the prompt has failed: it is not in the log, although it was.
    pub(super) fn set_lost(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns whether the prompt has failed and had no turn, so that sending it again is safe.
    pub(super) fn has_failed_without_turn(&self) -> bool {
        let has_failed = self.end.get().is_some_and(|end| end.stop.is_err());
        has_failed && (self.is_lost() || self.inserted.get().is_none())
    }
}

/// What tells a prompt from others.
pub(crate) struct Identity<'a> {
    pub(super) origin: Option<ClientId>,
    pub(super) progress: &'a Arc<Progress>,
    pub(super) is_running: bool,
}

/// The longest name of a prompt, in bytes.
pub const LONGEST_NAME: usize = 128;

/// Returns whether a text can be the name of a prompt or of input.
pub fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
}

/// How a prompt with a name ended, for clients that have lost its answer.
#[derive(Debug)]
pub(crate) struct PromptEnd {
    pub(crate) stop: HandlerResult<StopReason>,
    pub(crate) members: Option<Json>,
    pub(crate) last_event: u64,
}

impl PromptEnd {
    fn result(&self) -> TurnResult {
        TurnResult {
            stop: self.stop.clone(),
            members: self.members.clone(),
            last_event: self.last_event,
            barrier: None,
        }
    }
}

/// Where a prompt is in the log.
#[derive(Clone, Debug)]
pub(crate) struct Inserted {
    pub(crate) turn: TurnId,
    /// The id of the user's message.
    pub(crate) message: MessageId,
    /// The number of its last event.
    pub(crate) last_event: u64,
}

/// How a turn ended.
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct TurnResult {
    /// The stop reason, or the error that the prompt is answered with.
    pub stop: HandlerResult<StopReason>,
    /// Members of the answer besides the stop reason, an object.
    pub members: Option<Json>,
    /// The number of the turn's last event; 0 if it never started.
    pub last_event: u64,
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
    pub(super) session: WeakSession,
    pub(super) cancel: CancellationToken,
    pub(crate) progress: Arc<Progress>,
    /// `None`: another ticket has the result, and this one waits for the end of a prompt with a name.
    pub(super) result: Option<oneshot::Receiver<TurnResult>>,
}

impl Ticket {
    /// Cancels the prompt: its turn is to end, and before its turn it is answered at once.
    pub(crate) fn cancel(&self) {
        // For a turn that begins just now.
        self.cancel.cancel();
        if let Some(session) = self.session.upgrade() {
            session.cancel_if(|prompt| Arc::ptr_eq(prompt.progress, &self.progress));
        }
    }

    pub(crate) async fn result(&mut self) -> TurnResult {
        match &mut self.result {
            // Every prompt has a result, except when the runtime drops it with the runner.
            Some(result) => result
                .await
                .unwrap_or_else(|_| TurnResult::failed("the server shut down")),
            None => self.progress.end.wait().await.result(),
        }
    }
}

impl Prompt {
    pub(crate) fn new(
        blocks: Vec<ContentBlock>,
        meta: Option<Meta>,
        origin: Option<Prompter>,
    ) -> Self {
        let bytes = blocks.iter().map(connection::check::size).sum();
        let ours: Option<serde_json::Value> = meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
        let id = ours.as_ref().and_then(|ours| ours["promptId"].as_str());
        let id = id.filter(|id| id.len() <= LONGEST_NAME).map(Arc::from);
        Self {
            content: id.as_ref().map_or(0, |_| ContentHash::of(&blocks)),
            blocks,
            meta,
            origin,
            message: None,
            bytes,
            cancel: CancellationToken::new(),
            progress: Arc::default(),
            result: None,
            id,
            is_once: false,
        }
    }

    /// Returns who waits for the result.
    pub(super) fn ticket(&mut self, session: &Session) -> Ticket {
        let (sender, result) = oneshot::channel();
        self.result = Some(sender);
        Ticket {
            session: session.downgrade(),
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
            result: Some(result),
        }
    }

    /// Returns what tells the prompt from others.
    pub(super) fn identity(&self) -> Identity<'_> {
        Identity {
            origin: self.origin.as_ref().map(|origin| origin.client),
            progress: &self.progress,
            is_running: false,
        }
    }

    /// Returns the name that its sender has given it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Gives the prompt a name under which it runs once, however often it is sent: the idempotency key
    /// of all interfaces.
    ///
    /// # Errors
    ///
    /// When the name is empty or too long.
    pub(crate) fn once_as(mut self, name: &str) -> Result<Self, Refusal> {
        if !is_name(name) {
            return Err(Refusal::NameLength);
        }
        if self.id.is_none() {
            self.content = ContentHash::of(&self.blocks);
        }
        (self.id, self.is_once) = (Some(name.into()), true);
        Ok(self)
    }

    pub(super) fn with_message(mut self, message: MessageId) -> Self {
        self.message = Some(message);
        self
    }

    /// Sends the result to whoever waits for it.
    pub(super) fn end(mut self, result: TurnResult) {
        // A turn that has run has none any more.
        self.progress.inbox.abandon();
        if let Some(kept) = self.progress.kept.get() {
            kept.ended(result.stop.as_ref().err());
        }
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
