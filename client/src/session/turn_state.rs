//! The state of a turn: its number, cancellation and end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::outcome::{CostBefore, Gathering, TokenUsage};
use super::reader::Reader;

/// The maximum number of decisions about tool calls that nobody allowed, at a time.
const MOST_REVIEWS: usize = 16;

#[derive(Debug)]
pub(crate) struct TurnState {
    /// The number of the turn; the first of a session is 1.
    pub(super) number: u64,
    /// The id of its prompt, if the agent names the prompts of updates.
    pub(super) prompt_id: Option<String>,
    /// Cancelled when the turn is to be cancelled.
    pub(crate) cancel: CancellationToken,
    /// Set when `session/cancel` was sent; later permission requests are answered `cancelled`.
    pub(crate) cancel_sent: CancellationToken,
    /// Set when the cancellation has timed out. The end of the turn is no longer awaited.
    pub(crate) overdue: CancellationToken,
    /// Set when the agent has ended the turn.
    pub(crate) ended: CancellationToken,
    /// Decide about tool calls that nobody allowed. The outcome follows them.
    pub(crate) reviews: TaskTracker,
    /// Bounds their number.
    pub(crate) review_places: Arc<Semaphore>,
    /// The reader of the turn's events.
    pub(super) reader: Arc<Reader>,
    gathering: Mutex<Gathering>,
}

impl TurnState {
    pub(super) fn new(number: u64, prompt_id: Option<String>, cost_before: CostBefore) -> Self {
        Self {
            number,
            prompt_id,
            cancel: CancellationToken::new(),
            cancel_sent: CancellationToken::new(),
            overdue: CancellationToken::new(),
            ended: CancellationToken::new(),
            reviews: TaskTracker::new(),
            review_places: Arc::new(Semaphore::new(MOST_REVIEWS)),
            reader: Arc::default(),
            gathering: Mutex::new(Gathering::new(Instant::now(), cost_before)),
        }
    }

    /// Returns whether the agent names prompts.
    pub(crate) fn has_prompt_id(&self) -> bool {
        self.prompt_id.is_some()
    }

    /// Returns whether an update of this prompt belongs to the turn. An agent that names prompts
    /// names the prompt of each update in a turn. From others, all updates belong to the turn.
    pub(super) fn has(&self, prompt_id: Option<&str>) -> bool {
        self.prompt_id.is_none() || self.prompt_id.as_deref() == prompt_id
    }

    /// Ends the turn because of a tool call that nobody allowed.
    pub(crate) fn not_allowed(&self, title: String) {
        self.gathering().not_allowed(title);
        self.cancel.cancel();
    }

    /// Waits until nothing that the turn did is to be decided any more.
    pub(crate) async fn reviewed(&self) {
        self.reviews.close();
        self.reviews.wait().await;
    }

    /// Records the end of the turn with its token usage.
    pub(crate) fn end(&self, tokens: Option<TokenUsage>) {
        self.gathering().end(tokens);
    }

    /// Returns the outcome so far. Locked for a few instructions and never across an await.
    pub(super) fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
