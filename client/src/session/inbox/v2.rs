//! The state of a session of version 2: its updates are converted, and an update ends the work for
//! a prompt.

use std::sync::Arc;

use acp_sdk::v1::{ErrorCode, StopReason};
use acp_sdk::{Json, RpcError, v2};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::{Inbox, TurnState};
use crate::session::TokenUsage;
use crate::v2::{Converted, Converter, End, Work};

/// The end of the work for a prompt.
type Ended = Result<StopReason, RpcError>;

#[derive(Debug, Default)]
pub(super) struct StateV2 {
    pub(super) converter: Converter,
    work: Work,
    /// The turn that the agent works for, and the receiver of its end.
    turn: Option<(Arc<TurnState>, oneshot::Sender<Ended>)>,
}

impl Inbox {
    /// Converts an update. Also returns the end of the turn if the update is one; it is [passed
    /// on](Self::end_work) after the update was delivered.
    pub(crate) fn convert(&self, update: v2::SessionUpdate) -> (Converted, Option<End>) {
        let mut state = self.lock();
        let end = state.v2.work.update(&update);
        (state.v2.converter.update(update), end)
    }

    /// Prepares for a prompt that is sent next. Returns a receiver of the end of its turn.
    pub(crate) fn begin_work(&self, turn: &Arc<TurnState>) -> oneshot::Receiver<Ended> {
        let (sender, ended) = oneshot::channel();
        let mut state = self.lock();
        state.v2.work.begin();
        state.v2.turn = Some((turn.clone(), sender));
        ended
    }

    /// Records that the agent accepted the prompt, and the id of its message if there is one.
    pub(crate) fn accept_work(&self, message: Option<&str>) {
        let end = self.lock().v2.work.accepted(message);
        if let Some(end) = end {
            self.end_work(end);
        }
    }

    /// Records that the agent rejected the prompt.
    pub(crate) fn refuse_work(&self, error: &RpcError) {
        self.lock().v2.work.refused();
        let stop = match error.code {
            // The prompt is not part of the conversation.
            ErrorCode::REQUEST_CANCELLED => Ok(StopReason::Cancelled),
            _ => Err(error.clone()),
        };
        self.end_work(End { stop, meta: None });
    }

    /// Fails the turn after a lost connection: without a cursor, the state of its work is unknown.
    pub(crate) fn lose_work(&self) {
        if !self.lock().v2.work.lost() {
            return;
        }
        let reason = "the connection was lost, and whether the turn goes on is unknown";
        let data = Json::from(json!({crate::reconnect::OWN: crate::reconnect::mark()}));
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason).with_data(data);
        self.end_work(End {
            stop: Err(error),
            meta: None,
        });
    }

    /// Ends the turn with the end of its work.
    pub(crate) fn end_work(&self, end: End) {
        let Some((turn, sender)) = self.lock().v2.turn.take() else {
            return;
        };
        turn.end(tokens(&end));
        self.end_turn(&turn, end.stop.as_ref().ok().cloned());
        // The connection may have failed before.
        let _ = sender.send(end.stop);
    }
}

/// Returns the token usage reported with the end of the work; [`crate::v2::Usage`] moves it to
/// `_meta`.
fn tokens(end: &End) -> Option<TokenUsage> {
    #[derive(Deserialize)]
    struct Ours {
        usage: TokenUsage,
    }
    let ours: Ours = end.meta.as_ref()?.get("acp-sdk")?;
    Some(ours.usage)
}
