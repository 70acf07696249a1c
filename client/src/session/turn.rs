//! A turn as a stream of events that ends in an outcome.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_sdk::v1::{ContentBlock, SessionUpdate, StopReason};
use futures_core::Stream;
use tokio::sync::oneshot;

use super::event::{Event, SessionEvent};
use super::{Inbox, Outcome, TurnState};
use crate::error::{Error, Result};

/// A running prompt.
///
/// Events are returned by [`next`](Self::next) or through [`Stream`]; [`outcome`](Self::outcome)
/// returns their summary, whether they were read or not. Unread events exert backpressure on the
/// agent, see [`ClientBuilder::reader_timeout`](crate::ClientBuilder::reader_timeout). Dropping a
/// running turn cancels it.
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    state: Arc<TurnState>,
    /// Receives the end of the turn.
    result: oneshot::Receiver<Result<StopReason>>,
    inbox: Arc<Inbox>,
    reader_timeout: Duration,
}

impl Turn {
    pub(crate) fn new(
        state: Arc<TurnState>,
        result: oneshot::Receiver<Result<StopReason>>,
        inbox: Arc<Inbox>,
        reader_timeout: Duration,
    ) -> Self {
        Self {
            state,
            result,
            inbox,
            reader_timeout,
        }
    }

    /// Returns the next event; `None` when the turn has ended.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|cx| self.state.reader.poll(cx)).await
    }

    /// Returns the next event if one is queued, without waiting.
    pub fn next_ready(&mut self) -> Option<SessionEvent> {
        self.state.reader.ready()
    }

    /// Sends `session/cancel`. The turn ends with the agent's response to the prompt; until then
    /// events still arrive, and permission requests are answered with `cancelled`.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/prompt-turn#cancellation>
    pub fn cancel(&self) {
        self.state.cancel();
    }

    /// Waits for the end of the turn and returns its outcome. Unread events are dropped.
    ///
    /// May complete before [`Events`](crate::Events) of the session were read to the end of the turn;
    /// see [`outcome_when_read`](Self::outcome_when_read).
    ///
    /// # Errors
    ///
    /// Fails when the agent answers the prompt with an error, does not end a cancelled turn in
    /// time, or has disconnected.
    pub async fn outcome(mut self) -> Result<Outcome> {
        self.finish().await
    }

    /// Waits for the outcome, and then until all [`Events`](crate::Events) of the session were read to
    /// the end of the turn.
    ///
    /// A reader has read an event when it asks for the next one. A reader that takes no event for
    /// [`reader_timeout`](crate::ClientBuilder::reader_timeout) is not waited for, nor one that was
    /// dropped. Await this in another task than the one that reads the events.
    ///
    /// # Errors
    ///
    /// As [`outcome`](Self::outcome).
    pub async fn outcome_when_read(mut self) -> Result<Outcome> {
        let outcome = self.finish().await;
        self.inbox.all_read(self.reader_timeout).await;
        outcome
    }

    /// As [`outcome`](Self::outcome), without consuming the turn: after a failure,
    /// [`so_far`](Self::so_far) returns the output until then. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`outcome`](Self::outcome). [`Error::TurnLost`] if an earlier call has completed.
    pub async fn finish(&mut self) -> Result<Outcome> {
        self.state.reader.discard();
        let ended = match self.result.is_terminated() {
            true => Err(Error::TurnLost),
            false => (&mut self.result).await.unwrap_or(Err(Error::TurnLost)),
        };
        ended.map(|stop_reason| self.state.gathering().finish(stop_reason))
    }

    /// Waits for the end of the turn as [`outcome`](Self::outcome) does, and calls `on_text` with
    /// each chunk of the agent's text when it is received.
    ///
    /// ```no_run
    /// # async fn example(session: acp_client::Session) -> acp_client::Result<()> {
    /// let turn = session.prompt("What is this project about?").await?;
    /// let outcome = turn.on_text(|text| print!("{text}")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`outcome`](Self::outcome).
    pub async fn on_text(mut self, mut on_text: impl FnMut(&str)) -> Result<Outcome> {
        while let Some(event) = self.next().await {
            if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = &event.event
                && let ContentBlock::Text(text) = &chunk.content
            {
                on_text(&text.text);
            }
        }
        self.finish().await
    }

    /// Returns the outcome so far. Its stop reason is not valid yet.
    #[must_use]
    pub fn so_far(&self) -> Outcome {
        self.state.gathering().so_far()
    }
}

impl Stream for Turn {
    type Item = SessionEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        self.state.reader.poll(cx)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.reader.leave();
        // Has no effect after the end of the turn.
        self.state.cancel();
    }
}
