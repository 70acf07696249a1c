//! One guard for everything that an agent may do here.
//!
//! The agent's permission requests and what the client serves (files read and written, commands
//! started) are decided by the same [`Permissions`](crate::Permissions), answered in the same way and
//! recorded as the same event. [`Effect`] makes a request of what the client is about to do, whose
//! path and command are exact. [`Approvals`] knows what was allowed in a turn: an effect that belongs
//! to a tool call which was allowed is not asked about again, and a tool call that completed although
//! nobody allowed it is found.

mod approvals;
mod effect;
mod modes;

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::ClientContext;
use tokio::time::timeout;

pub use self::approvals::Ended;
pub(crate) use self::approvals::{Approvals, Unasked};
pub use self::effect::{Effect, tool_question};
pub use self::modes::is_mode;
pub(crate) use self::modes::{AskFirst, never_asks};
use crate::hooks::AnyPermissions;
use crate::permission::{Decision, PermissionRequest, Policy, Reason};
use crate::session::{Answered, Inbox, Signal, TurnState};

/// The limits in time of a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For a reader that takes none of the events before the request.
    pub(crate) unread: Duration,
    /// For the answer, if the request belongs to no session whose turn may be cancelled.
    pub(crate) answer: Option<Duration>,
}

/// Decides what an agent may do.
#[derive(Clone)]
pub(crate) struct Guard(Arc<AnyPermissions>);

impl Default for Guard {
    fn default() -> Self {
        Self::new(Arc::new(Policy::DenyAll))
    }
}

impl Guard {
    pub(crate) fn new(permissions: Arc<AnyPermissions>) -> Self {
        Self(permissions)
    }

    /// Returns whether a person may see the requests.
    pub(crate) fn is_shown(&self) -> bool {
        self.0.in_order()
    }

    /// Returns whether a person decides.
    pub(crate) fn asks_person(&self) -> bool {
        self.0.asks_person()
    }

    /// Decides a request of a turn, until it is cancelled.
    ///
    /// A person sees the earlier events first. Beyond one of the limits the request is rejected.
    pub(crate) async fn decide(
        &self,
        inbox: &Inbox,
        question: PermissionRequest,
        turn: Option<&TurnState>,
        limits: Limits,
        cancelled: impl Future<Output = ()>,
    ) -> Answered {
        let rejected = |reason: Reason| {
            let session = &question.request.session_id;
            tracing::warn!(%session, "a permission request was rejected: {reason}");
            (Decision::Reject, Some(reason))
        };
        let decided = async {
            if self.0.in_order() && !inbox.caught_up(turn, limits.unread).await {
                return rejected(Reason::NotRead(limits.unread));
            }
            let decided = self.0.decide_with_reason(&question);
            let Some(limit) = limits.answer else {
                return decided.await;
            };
            let decided = timeout(limit, decided).await;
            decided.unwrap_or_else(|_| rejected(Reason::NotAnswered(limit)))
        };
        let (decision, reason) = tokio::select! {
            biased;
            () = cancelled => (Decision::Cancelled, None),
            decided = decided => decided,
        };
        Answered {
            outcome: decision.among(&question.request.options),
            question,
            reason: reason.map(Box::new),
        }
    }
}

/// Waits until the agent cancels its request, or `session/cancel` was sent for the turn.
pub(crate) async fn cancelled(cx: &ClientContext, turn: Option<&TurnState>) {
    tokio::select! {
        () = cx.cancelled() => {}
        () = cancel_sent(turn) => {}
    }
}

/// Waits until `session/cancel` for the turn was sent.
async fn cancel_sent(turn: Option<&TurnState>) {
    match turn {
        Some(turn) => turn.signals.until(Signal::CancelSent).await,
        None => std::future::pending().await,
    }
}
