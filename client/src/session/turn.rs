//! A turn as its reader sees it: a stream of events that ends in an outcome.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use acp_sdk::v1::StopReason;
use futures_core::Stream;
use tokio::sync::oneshot;

use super::outcome::Gathering;
use super::{Event, Outcome, TurnState};
use crate::error::{Error, Result};

/// A prompt that is being answered.
///
/// Events come from [`next`](Self::next), or through [`Stream`]; when they have ended,
/// [`outcome`](Self::outcome) tells what they came to. The agent is slowed down while nobody
/// takes the events. Dropped before its end, a turn is cancelled.
#[derive(Debug)]
#[must_use = "a turn that is dropped is cancelled"]
pub struct Turn {
    state: Arc<TurnState>,
    /// How the turn ends: sent once, when every event is there to be read.
    result: oneshot::Receiver<Result<StopReason>>,
    ended: Option<Result<StopReason>>,
    gathering: Gathering,
}

impl Turn {
    pub(crate) fn new(
        state: Arc<TurnState>,
        result: oneshot::Receiver<Result<StopReason>>,
    ) -> Self {
        Self {
            state,
            result,
            ended: None,
            gathering: Gathering::new(),
        }
    }

    /// The next event; none when the turn has ended.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next event if it is there already. Whoever prints events can gather those that are
    /// there before writing them out.
    pub fn next_ready(&mut self) -> Option<Event> {
        let event = self.state.ready_event()?;
        self.gather(&event);
        Some(event)
    }

    /// Asks the agent to end the turn. It goes on until the agent has: events still come, and
    /// questions for permission are answered with `cancelled`.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/prompt-turn#cancellation>
    pub fn cancel(&self) {
        self.state.cancel.cancel();
    }

    /// Waits for the end of the turn and tells what it came to.
    ///
    /// # Errors
    ///
    /// When the agent answers the prompt with an error, does not end a cancelled turn in
    /// time, or is gone.
    pub async fn outcome(mut self) -> Result<Outcome> {
        while self.next().await.is_some() {}
        let ended = self.ended.take();
        let gathering = std::mem::replace(&mut self.gathering, Gathering::new());
        ended
            .unwrap_or(Err(Error::TurnLost))
            .map(|stop_reason| gathering.finish(stop_reason))
    }

    /// Returns what the events that were taken come to so far. The stop reason in it means nothing.
    pub(crate) fn so_far(&self) -> &Outcome {
        self.gathering.outcome()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.ended.is_none()
            && let Poll::Ready(result) = Pin::new(&mut self.result).poll(cx)
        {
            self.ended = Some(result.unwrap_or(Err(Error::TurnLost)));
        }
        match self.state.poll_event(cx) {
            Poll::Ready(event) => {
                self.gather(&event);
                Poll::Ready(Some(event))
            }
            Poll::Pending if self.ended.is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    fn gather(&mut self, event: &Event) {
        if let Event::Update(update) = event {
            self.gathering.update(update);
        }
    }
}

impl Stream for Turn {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_event(cx)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.stop_reading();
        // A turn that has ended does not mind.
        self.state.cancel.cancel();
    }
}
