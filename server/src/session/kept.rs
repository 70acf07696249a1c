//! Prompts that outlive their process: what was accepted is in the store while it waits, and runs once,
//! in this process or in the one that opens the session next.
//!
//! A prompt that begins at once is in the store with the start of its turn. One that waits is a row of
//! the store until the commit that has the start of its turn, or until it is cancelled. Nothing else
//! removes it: not a shutdown, nor a session that could not be opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use acp_sdk::v1::{ContentBlock, MessageId};
use acp_sdk::{HandlerError, Meta};
use serde::{Deserialize, Serialize};

use super::prompt::{Progress, Prompt, Ticket};
use super::{PromptHandle, Refusal, Session};
use crate::log::{Appender, Stored};
use crate::log_repeated;
use crate::store::{StoreError, StoreErrorKind, StoredPrompt};
use crate::{Error, Result};

/// What a prompt has whose sender is answered once the store has it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    stored: Arc<Stored>,
    /// Its row in the store while it waits; 0: none.
    row: AtomicU64,
    /// Whether its turn has begun, and it had a row.
    has_waited: AtomicBool,
}

impl Kept {
    /// The prompt has ended, or is gone with its task.
    pub(super) fn ended(&self, error: Option<&HandlerError>) {
        // Of a turn and of a row the commit sets it.
        if self.row().is_none() {
            let result = error.map_or(Ok(()), |error| Err(failed(error)));
            let _ = self.stored.set(result);
        }
    }

    /// Returns its row in the store, while it waits.
    pub(super) fn row(&self) -> Option<u64> {
        Some(self.row.load(Ordering::Acquire)).filter(|row| *row > 0)
    }
}

fn failed(reason: impl std::fmt::Display) -> StoreError {
    let message = format!("the prompt was not committed: {reason}");
    StoreError::new(StoreErrorKind::Unavailable, message)
}

/// A prompt in the store.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Text<B> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    /// The name under which it runs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    once: Option<String>,
    blocks: B,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
}

impl Prompt {
    /// Makes it a prompt that outlives its process.
    pub(super) fn kept(self) -> Self {
        self.progress.kept.get_or_init(Kept::default);
        self
    }

    pub(super) fn is_kept(&self) -> bool {
        self.progress.kept.get().is_some()
    }

    /// Returns its row in the store, if it waits there.
    pub(super) fn row(&self) -> Option<u64> {
        self.progress.kept.get()?.row()
    }

    /// Adds it to the store, for it waits.
    pub(super) fn keep(&self, appender: &mut Appender<'_>, row: u64, text: Option<String>) {
        let text = text.unwrap_or_else(|| self.to_text());
        appender.add_prompt(StoredPrompt::new(row, text));
        let kept = self.progress.kept.get_or_init(Kept::default);
        kept.row.store(row, Ordering::Release);
        appender.notify(&kept.stored);
    }

    /// Its turn begins with what is being appended.
    pub(crate) fn begin(&self, appender: &mut Appender<'_>) {
        let Some(kept) = self.progress.kept.get() else {
            return;
        };
        appender.notify(&kept.stored);
        if let Some(row) = kept.row() {
            kept.row.store(0, Ordering::Release);
            kept.has_waited.store(true, Ordering::Release);
            appender.remove_prompt(row);
        }
    }

    /// Returns whether its turn has begun after it was in the store.
    pub(crate) fn has_waited(&self) -> bool {
        let kept = self.progress.kept.get();
        kept.is_some_and(|kept| kept.has_waited.load(Ordering::Acquire))
    }

    /// Returns the text of the store.
    pub(super) fn to_text(&self) -> String {
        let text = Text {
            message: self.message.clone(),
            once: self.name().filter(|_| self.is_once).map(str::to_owned),
            blocks: &self.blocks,
            meta: self.meta.clone(),
        };
        // It came as JSON, or was made of texts.
        serde_json::to_string(&text).unwrap_or_default()
    }

    /// Returns the prompt of a row.
    fn of_text(stored: &StoredPrompt) -> Result<Self, String> {
        let text: Text<Vec<ContentBlock>> =
            serde_json::from_str(&stored.text).map_err(|error| error.to_string())?;
        let mut prompt = Self::new(text.blocks, text.meta, None);
        if let Some(name) = text.once {
            let named = prompt.once_as(&name);
            prompt = named.map_err(|refusal| refusal.reason().to_owned())?;
        }
        prompt.message = text.message;
        let kept = prompt.progress.kept.get_or_init(Kept::default);
        kept.row.store(stored.number, Ordering::Release);
        // It is new.
        let _ = kept.stored.set(Ok(()));
        Ok(prompt)
    }
}

impl Ticket {
    /// Waits until the store has the prompt: it waits there, or its turn has begun. Can be dropped and
    /// called again.
    ///
    /// # Errors
    ///
    /// The store's. The prompt has no turn then.
    pub(crate) async fn stored(&self) -> Result<()> {
        let Some(kept) = self.progress.kept.get() else {
            // It was sent before, by a client that sends it again until it has an answer.
            return match self.session.upgrade() {
                Some(session) => session.cancellations_stored().await,
                None => Ok(()),
            };
        };
        let stored = kept.stored.wait().await.clone();
        stored.map_err(|error| {
            if let Some(session) = self.session.upgrade() {
                session.take_back(&self.progress, &error);
            }
            Error::Store(error)
        })
    }
}

impl Session {
    /// As [`prompt`](Self::prompt), for a prompt that must outlive this process: completes once the store
    /// has it. If it waits when the process ends, its turn begins where the session is opened next, once,
    /// and with the same message id. Only an answer of the store's makes that sure: after an error the
    /// prompt has no turn.
    ///
    /// # Errors
    ///
    /// As [`prompt`](Self::prompt), and [`Error::Store`](crate::Error::Store).
    pub async fn prompt_kept(&self, prompt: impl Into<Vec<ContentBlock>>) -> Result<PromptHandle> {
        let kept = self.try_prompt_kept(None, prompt, None).await;
        kept.map_err(|refusal| refusal.error(self))?
    }

    /// As [`prompt_kept`](Self::prompt_kept), with a name after [`recall_names`](Self::recall_names), with
    /// `_meta`, and with the reason of a refusal as a value.
    ///
    /// # Errors
    ///
    /// The refusal; the store's error inside.
    #[doc(hidden)]
    pub async fn try_prompt_kept(
        &self,
        name: Option<&str>,
        prompt: impl Into<Vec<ContentBlock>>,
        meta: Option<Meta>,
    ) -> Result<Result<PromptHandle>, Refusal> {
        let message = MessageId::from(self.next_id("message"));
        let prompt = Prompt::new(prompt.into(), meta, None);
        let prompt = prompt.with_message(message.clone()).kept();
        let handle = match name {
            Some(name) => self.submit_once(name, prompt)?,
            None => PromptHandle::new(self.submit(prompt)?, message),
        };
        Ok(handle.stored().await.map(|()| handle))
    }

    /// Waits until prompts that were cancelled so far are removed from the store.
    ///
    /// # Errors
    ///
    /// The store's.
    #[doc(hidden)]
    pub async fn cancellations_stored(&self) -> Result<()> {
        let log = self.log();
        log.flush(log.epoch()).await.map_err(Error::Store)
    }

    /// Puts the prompts of the store into the queue of a session that is being opened.
    pub(crate) fn restore_prompts(&self, stored: &[StoredPrompt]) {
        for row in stored {
            match Prompt::of_text(row) {
                Ok(prompt) => self.state().queue.restore(prompt, row.number),
                Err(error) => {
                    let (session, number) = (self.id().as_str(), row.number);
                    log_repeated!(error, session, number, %error, "a prompt of the store cannot be read, and has no turn");
                    self.remove_prompts([number]);
                }
            }
        }
    }

    /// Removes prompts from the store that will have no turn.
    pub(super) fn remove_prompts(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut numbers = numbers.into_iter().peekable();
        if numbers.peek().is_none() {
            return;
        }
        // A session whose log has ended is another one's by now, and so are its prompts.
        let _ = self.log().append_now(None, |appender| {
            numbers.for_each(|number| appender.remove_prompt(number));
            Ok::<_, StoreError>(())
        });
    }

    /// Takes a prompt back that could not be committed, if it waits.
    fn take_back(&self, progress: &Arc<Progress>, error: &StoreError) {
        let is_meant = |prompt: super::prompt::Identity<'_>| {
            !prompt.is_running && Arc::ptr_eq(prompt.progress, progress)
        };
        let cancelled = self.state().queue.cancel(is_meant);
        let stop = Err(Error::Store(error.clone()).into());
        self.remove_prompts(cancelled.notify(&stop));
    }
}
