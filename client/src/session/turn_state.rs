//! A turn as the connection sees it: what arrives in it, and how it is being ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::{Gathering, TokenUsage};
use super::reader::Reader;

#[derive(Debug)]
pub(crate) struct TurnState {
    /// The first turn of a session is 1.
    pub(super) number: u64,
    /// Somebody wants the turn to be cancelled.
    pub(crate) cancel: CancellationToken,
    /// The agent was sent the cancellation; from now on its questions are answered `cancelled`.
    pub(crate) cancel_sent: CancellationToken,
    /// The agent has not ended the cancelled turn in time. Nobody waits for its end any more.
    pub(crate) overdue: CancellationToken,
    /// The agent has ended the turn.
    pub(crate) ended: CancellationToken,
    /// The reader of the turn's events.
    pub(super) reader: Arc<Reader>,
    gathering: Mutex<Gathering>,
}

impl TurnState {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            cancel: CancellationToken::new(),
            cancel_sent: CancellationToken::new(),
            overdue: CancellationToken::new(),
            ended: CancellationToken::new(),
            reader: Arc::default(),
            gathering: Mutex::new(Gathering::new(Instant::now())),
        }
    }

    /// The agent has answered the prompt.
    pub(crate) fn end(&self, tokens: Option<TokenUsage>) {
        self.gathering().end(tokens);
    }

    /// What the events so far come to. Locked for a few instructions and never across an await.
    pub(super) fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
