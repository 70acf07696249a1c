//! What waits for a prompt of the program itself.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{MessageId, StopReason};

use super::prompt::{Ticket, TurnResult};
use crate::Result;
use crate::event::TurnId;

/// A prompt that the program itself queued.
pub struct PromptHandle {
    ticket: Ticket,
    message: MessageId,
    /// What came while the handle waited for the beginning.
    ended: Option<TurnResult>,
}

impl PromptHandle {
    pub(super) fn new(ticket: Ticket, message: MessageId) -> Self {
        let ended = None;
        Self {
            ticket,
            message,
            ended,
        }
    }

    /// Returns the id of the user's message, which its events will have.
    #[must_use]
    pub fn message_id(&self) -> &MessageId {
        &self.message
    }

    /// Returns whether the prompt was sent before; see
    /// [`Session::prompt_once`](super::Session::prompt_once).
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.ticket.result.is_none()
    }

    /// Returns whether a prompt that [was sent before](Self::is_repeated) has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ticket.progress.end.get().is_some()
    }

    /// Returns the turn, if it has begun.
    #[must_use]
    pub fn turn(&self) -> Option<TurnId> {
        let inserted = self.ticket.progress.inserted.get();
        inserted.map(|inserted| inserted.turn)
    }

    /// Waits until the store has the prompt.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn stored(&self) -> Result<()> {
        self.ticket.stored().await
    }

    /// Cancels the prompt, whether or not its turn has begun.
    pub fn cancel(&self) {
        self.ticket.cancel();
    }

    /// Waits until the turn has begun, and returns it; `None` if it never does, because the prompt
    /// was cancelled or has failed before. Can be dropped and called again.
    pub async fn started(&mut self) -> Option<TurnId> {
        if self.ended.is_none() {
            let progress = self.ticket.progress.clone();
            tokio::select! {
                biased;
                _ = progress.inserted.wait() => {}
                ended = self.ticket.result() => self.ended = Some(ended),
            }
        }
        self.turn()
    }

    /// Waits for the end of the turn.
    ///
    /// # Errors
    ///
    /// The handler's.
    pub async fn stop_reason(self) -> HandlerResult<StopReason> {
        self.result().await.stop
    }

    /// Waits for the end of the turn, and returns all members of the answer.
    pub async fn result(mut self) -> TurnResult {
        match self.ended {
            Some(ended) => ended,
            None => self.ticket.result().await,
        }
    }
}

impl std::fmt::Debug for PromptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptHandle")
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
