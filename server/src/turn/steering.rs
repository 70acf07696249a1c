//! Input that the user gives while the turn runs.

use std::sync::Arc;

use acp_sdk::Meta;
use acp_sdk::extensions::SteerRefusal;
use acp_sdk::v1::{ContentChunk, MessageId, SessionUpdate};
use serde_json::json;
use tokio::sync::futures::Notified;

use super::core::{TurnCore, push};
use super::{Role, Turn};
use crate::session::{Input, Item, Logged};
use crate::{Error, Result};

impl Turn {
    /// Waits for the next input that the user gives while the turn runs, and takes it. It is a message of
    /// the user in the conversation from then on, and its sender is answered.
    ///
    /// An agent that calls this declares [`AgentInfo::steering`](crate::AgentInfo::steering). What is not
    /// taken when the turn ends is refused, or becomes a prompt if its sender asked for that.
    ///
    /// ```
    /// use acp_server::{Result, Turn};
    ///
    /// async fn answer(turn: &Turn, work: impl Future<Output = String>) -> Result<String> {
    ///     let mut work = std::pin::pin!(work);
    ///     loop {
    ///         tokio::select! {
    ///             result = &mut work => return Ok(result),
    ///             input = turn.steered() => {
    ///                 turn.send_text(format!("I will consider {:?}.", input?.text())).await?;
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// Can be dropped and called again without loss. Input that was being committed when the future was
    /// dropped counts as taken, and the next call returns it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the turn is cancelled, otherwise as [`send_text`](Self::send_text).
    pub async fn steered(&self) -> Result<Input> {
        loop {
            let added = self.core.progress.inbox.added.notified();
            if let Some(input) = self.steered_now().await? {
                return Ok(input);
            }
            self.core.input_added(added).await?;
        }
    }

    /// As [`steered`](Self::steered), but returns `None` if no input waits: for an agent that inspects it
    /// between two steps.
    ///
    /// # Errors
    ///
    /// As [`steered`](Self::steered).
    pub async fn steered_now(&self) -> Result<Option<Input>> {
        loop {
            self.core.check_input()?;
            let inbox = &self.core.progress.inbox;
            if inbox.is_empty() {
                return Ok(None);
            }
            if !inbox.has_logged() {
                // Not with an item in hand: the future may be dropped here.
                self.core.room().await;
                self.core.log_input(None)?;
            }
            if let Some(input) = self.core.deliver().await? {
                return Ok(Some(input));
            }
        }
    }

    /// Waits for input without taking it, for a turn of another agent, which may refuse it.
    ///
    /// # Errors
    ///
    /// As [`steered`](Self::steered).
    #[doc(hidden)]
    pub async fn offered_input(&self) -> Result<OfferedInput> {
        loop {
            self.core.check_input()?;
            let added = self.core.progress.inbox.added.notified();
            if let Some(item) = self.core.progress.inbox.take_unlogged() {
                return Ok(OfferedInput {
                    core: self.core.clone(),
                    item: Some(item),
                });
            }
            self.core.input_added(added).await?;
        }
    }
}

/// Input that is offered to another agent. Dropped, it waits again.
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct OfferedInput {
    core: Arc<TurnCore>,
    item: Option<Item>,
}

impl Drop for OfferedInput {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.core.progress.inbox.put_back(item);
        }
    }
}

impl OfferedInput {
    /// Returns the input.
    #[must_use]
    pub fn input(&self) -> Input {
        let input = self.item.as_ref().map(|item| item.input.clone());
        input.unwrap_or_default()
    }

    /// The other agent has taken it: makes it an event at this place of the log. Its sender is answered
    /// when it is committed.
    pub fn accept(mut self) {
        let item = self.item.take();
        if self.core.log_input(item).is_ok() {
            self.core.errand(|core| async move {
                // The sender is answered with the error, when the turn ends.
                let _ = core.deliver().await;
            });
        }
    }

    /// The other agent does not take it.
    pub fn refuse(mut self) {
        if let Some(item) = self.item.take() {
            let session = &self.core.session;
            session.settle_unused(&self.core.progress.inbox, item, SteerRefusal::TurnEnded);
        }
    }
}

impl TurnCore {
    /// # Errors
    ///
    /// [`Error::TurnEnded`] and [`Error::Cancelled`].
    fn check_input(&self) -> Result<()> {
        self.check_open("input")?;
        match self.cancel.is_cancelled() {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// Waits for further input, as long as the turn is not cancelled.
    async fn input_added(&self, added: Notified<'_>) -> Result<()> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Error::Cancelled),
            () = added => Ok(()),
        }
    }

    /// Appends an item, or the next one that waits, and leaves it in the inbox until it is committed.
    fn log_input(&self, item: Option<Item>) -> Result<()> {
        let inbox = &self.progress.inbox;
        let mut lost = item.as_ref().map(|item| item.id);
        let appended = self.session.log().append_now(Some(self.epoch), |appender| {
            self.check_open("input")?;
            // Under the log's lock: the order of the events is that of the senders.
            let Some(mut item) = item.or_else(|| inbox.take_unlogged()) else {
                return Ok(());
            };
            lost = Some(item.id);
            self.end_message();
            let message = MessageId::from(self.next_id("message"));
            let mut ours = json!({ "steered": true });
            if let Some(name) = item.input.name() {
                ours["promptId"] = name.into();
            }
            let first = appender.next_number();
            for block in std::mem::take(&mut item.input.blocks) {
                let chunk = ContentChunk::new(block)
                    .with_message_id(&message)
                    .with_meta(Meta::new().with("acp-sdk", &ours));
                let update = Role::User.chunk(chunk);
                push(appender, &update)?;
                // Taken back instead of copied: images are large.
                if let SessionUpdate::UserMessageChunk(chunk) = update {
                    item.input.blocks.push(chunk.content);
                }
            }
            let last_event = appender.next_number() - 1;
            if let Some(origin) = &item.origin {
                origin.subscription.knows(first, last_event);
            }
            inbox.log(Logged {
                item,
                epoch: self.epoch,
                message,
                last_event,
            });
            lost = None;
            Ok(())
        });
        if let Some(lost) = lost {
            inbox.forget(lost);
        }
        appended
    }

    /// Delivers the next item of the log once it is committed; `None` if another call has.
    async fn deliver(&self) -> Result<Option<Input>> {
        let log = self.session.log();
        log.flush(self.epoch).await.map_err(Error::Store)?;
        let logged = self.progress.inbox.take_logged();
        let inbox = &self.progress.inbox;
        Ok(logged.map(|logged| self.session.settle_logged(inbox, logged)))
    }
}
