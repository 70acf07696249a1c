//! What a server has done since its start, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use acp_sdk::HandlerResult;
use acp_sdk::v1::StopReason;

/// Declares what is counted: each name is a counter and a number.
macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Numbers about a server since its start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Statistics {
            /// Sessions in memory.
            pub sessions: u64,
            $($(#[$doc])+ pub $name: u64,)+
        }

        /// Counts what a server does.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            pub(super) fn read(&self, sessions: u64) -> Statistics {
                // In this order: starts are read after ends, so that no more turns have ended than
                // started.
                Statistics { sessions, $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Turns that ended with [`StopReason::EndTurn`].
    end_turn,
    /// Turns that ended with [`StopReason::MaxTokens`].
    max_tokens,
    /// Turns that ended with [`StopReason::MaxTurnRequests`].
    max_turn_requests,
    /// Turns that ended with [`StopReason::Refusal`].
    refusal,
    /// Turns that ended with [`StopReason::Cancelled`].
    cancelled,
    /// Turns that ended with another stop reason.
    other,
    /// Turns that failed.
    failed,
    /// Turns that have started.
    turns_started,
    /// Sessions that [`Retention`](crate::Retention) has deleted.
    retention_deleted,
    /// Inspections of the store for [`Retention`](crate::Retention) that an error of the store ended.
    retention_failed,
    /// Sessions that were opened because the server that had them was killed in a turn.
    adopted,
}

/// A number that only rises.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
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

impl Counters {
    pub(crate) fn turn_ended(&self, stop: &HandlerResult<StopReason>) {
        let counter = match stop {
            Ok(StopReason::EndTurn) => &self.end_turn,
            Ok(StopReason::MaxTokens) => &self.max_tokens,
            Ok(StopReason::MaxTurnRequests) => &self.max_turn_requests,
            Ok(StopReason::Refusal) => &self.refusal,
            Ok(StopReason::Cancelled) => &self.cancelled,
            Ok(_) => &self.other,
            Err(_) => &self.failed,
        };
        counter.increment();
    }
}
