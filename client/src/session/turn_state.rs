//! The state of a turn: its number, cancellation and end.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::outcome::{CostBefore, Gathering, TokenUsage};
use super::reader::Reader;

/// The maximum number of decisions about tool calls that nobody allowed, at a time.
const MOST_REVIEWS: usize = 16;

/// What can happen to a turn, once each.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Signal {
    /// The turn is to be cancelled.
    Cancel = 1,
    /// `session/cancel` was sent; later permission requests are answered `cancelled`.
    CancelSent = 2,
    /// The cancellation has timed out. The end of the turn is no longer awaited.
    Overdue = 4,
    /// The agent has ended the turn.
    Ended = 8,
}

/// What has happened to a turn.
///
/// One for all signals, because each prompt makes it: a `CancellationToken` for each would cost as much
/// as sending a short prompt.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    set: AtomicU8,
    changed: Notify,
}

impl Signals {
    pub(crate) fn set(&self, signal: Signal) {
        self.set.fetch_or(signal as u8, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    pub(crate) fn has(&self, signal: Signal) -> bool {
        self.set.load(Ordering::Acquire) & signal as u8 != 0
    }

    /// Waits until a signal is set.
    pub(crate) async fn until(&self, signal: Signal) {
        loop {
            // Created before the check, so that no change is missed.
            let changed = self.changed.notified();
            if self.has(signal) {
                return;
            }
            changed.await;
        }
    }
}

/// Decisions about tool calls that nobody allowed.
#[derive(Debug)]
pub(crate) struct Reviews {
    /// The outcome of the turn follows them.
    pub(crate) tasks: TaskTracker,
    /// Bounds their number.
    pub(crate) permits: Arc<Semaphore>,
}

#[derive(Debug)]
pub(crate) struct TurnState {
    /// The number of the turn; the first of a session is 1.
    pub(super) number: u64,
    /// The id of its prompt, if the agent names the prompts of updates.
    pub(super) prompt_id: Option<String>,
    pub(crate) signals: Signals,
    /// Made for the first of them, which few turns have.
    reviews: OnceLock<Reviews>,
    /// The reader of the turn's events.
    pub(super) reader: Arc<Reader>,
    gathering: Mutex<Gathering>,
}

impl TurnState {
    pub(super) fn new(number: u64, prompt_id: Option<String>, cost_before: CostBefore) -> Self {
        Self {
            number,
            prompt_id,
            signals: Signals::default(),
            reviews: OnceLock::new(),
            reader: Arc::default(),
            gathering: Mutex::new(Gathering::new(Instant::now(), cost_before)),
        }
    }

    /// Asks for the cancellation of the turn.
    pub(crate) fn cancel(&self) {
        self.signals.set(Signal::Cancel);
    }

    pub(crate) fn reviews(&self) -> &Reviews {
        self.reviews.get_or_init(|| Reviews {
            tasks: TaskTracker::new(),
            permits: Arc::new(Semaphore::new(MOST_REVIEWS)),
        })
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
        self.cancel();
    }

    /// Waits until nothing that the turn did is to be decided any more.
    pub(crate) async fn reviewed(&self) {
        if let Some(reviews) = self.reviews.get() {
            reviews.tasks.close();
            reviews.tasks.wait().await;
        }
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
