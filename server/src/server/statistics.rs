//! What a server has done since its start, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use acp_sdk::HandlerResult;
use acp_sdk::v1::StopReason;

/// Numbers about a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Sessions in memory.
    pub sessions: u64,
    /// Turns that have started.
    pub turns_started: u64,
    /// Turns that ended with [`StopReason::EndTurn`].
    pub end_turn: u64,
    /// Turns that ended with [`StopReason::MaxTokens`].
    pub max_tokens: u64,
    /// Turns that ended with [`StopReason::MaxTurnRequests`].
    pub max_turn_requests: u64,
    /// Turns that ended with [`StopReason::Refusal`].
    pub refusal: u64,
    /// Turns that ended with [`StopReason::Cancelled`].
    pub cancelled: u64,
    /// Turns that ended with another stop reason.
    pub other: u64,
    /// Turns that failed.
    pub failed: u64,
    /// Sessions that [`Retention`](crate::Retention) has deleted.
    pub retention_deleted: u64,
    /// Inspections of the store for [`Retention`](crate::Retention) that an error of the store ended.
    pub retention_failed: u64,
}

impl Statistics {
    /// Returns the number of turns that have ended, however they did.
    #[must_use]
    pub fn turns_ended(&self) -> u64 {
        self.end_turn
            + self.max_tokens
            + self.max_turn_requests
            + self.refusal
            + self.cancelled
            + self.other
            + self.failed
    }

    /// Returns the number of turns that run.
    #[must_use]
    pub fn turns_running(&self) -> u64 {
        self.turns_started.saturating_sub(self.turns_ended())
    }
}

/// Counts turns.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    started: AtomicU64,
    /// By stop reason, in the order of [`Statistics`].
    ended: [AtomicU64; 7],
    retention_deleted: AtomicU64,
    retention_failed: AtomicU64,
}

impl Counters {
    pub(crate) fn turn_started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn turn_ended(&self, stop: &HandlerResult<StopReason>) {
        let at = match stop {
            Ok(StopReason::EndTurn) => 0,
            Ok(StopReason::MaxTokens) => 1,
            Ok(StopReason::MaxTurnRequests) => 2,
            Ok(StopReason::Refusal) => 3,
            Ok(StopReason::Cancelled) => 4,
            Ok(_) => 5,
            Err(_) => 6,
        };
        self.ended[at].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retention_deleted(&self) {
        self.retention_deleted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retention_failed(&self) {
        self.retention_failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self, sessions: u64) -> Statistics {
        // Read before the starts, so that no more turns have ended than started.
        let ended = |at: usize| self.ended[at].load(Ordering::Relaxed);
        Statistics {
            sessions,
            end_turn: ended(0),
            max_tokens: ended(1),
            max_turn_requests: ended(2),
            refusal: ended(3),
            cancelled: ended(4),
            other: ended(5),
            failed: ended(6),
            retention_deleted: self.retention_deleted.load(Ordering::Relaxed),
            retention_failed: self.retention_failed.load(Ordering::Relaxed),
            turns_started: self.started.load(Ordering::Relaxed),
        }
    }
}
