//! What a session of version 2 needs besides: its updates are converted, and the work for a prompt
//! ends with an update.

use std::sync::Arc;

use acp_sdk::v1::{ErrorCode, StopReason};
use acp_sdk::{Json, RpcError, v2};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::{Inbox, TurnState};
use crate::session::TokenUsage;
use crate::v2::{Converted, Converter, End, Work};

/// How the work for a prompt has ended.
type Ended = Result<StopReason, RpcError>;

#[derive(Debug, Default)]
pub(super) struct StateV2 {
    pub(super) converter: Converter,
    work: Work,
    /// The turn of the prompt that the agent works for, and who waits for its end.
    turn: Option<(Arc<TurnState>, oneshot::Sender<Ended>)>,
}

impl Inbox {
    /// Converts an update; also returns the end of the turn, if that is what it says. It is
    /// [passed on](Self::end_work) when the update was delivered.
    pub(crate) fn convert(&self, update: v2::SessionUpdate) -> (Converted, Option<End>) {
        let mut state = self.lock();
        let end = state.v2.work.update(&update);
        (state.v2.converter.update(update), end)
    }

    /// A prompt is about to be sent. Returns how its turn ends, once the agent says so.
    pub(crate) fn begin_work(&self, turn: &Arc<TurnState>) -> oneshot::Receiver<Ended> {
        let (sender, ended) = oneshot::channel();
        let mut state = self.lock();
        state.v2.work.begin();
        state.v2.turn = Some((turn.clone(), sender));
        ended
    }

    /// The agent has accepted the prompt as this message, if it says which.
    pub(crate) fn accept_work(&self, message: Option<&str>) {
        let end = self.lock().v2.work.accepted(message);
        if let Some(end) = end {
            self.end_work(end);
        }
    }

    /// The agent has answered the prompt with an error.
    pub(crate) fn refuse_work(&self, error: &RpcError) {
        self.lock().v2.work.refused();
        let stop = match error.code {
            // It was not in the conversation yet.
            ErrorCode::REQUEST_CANCELLED => Ok(StopReason::Cancelled),
            _ => Err(error.clone()),
        };
        self.end_work(End { stop, meta: None });
    }

    /// The connection was lost, and the agent has no cursor: whether it still works is unknown.
    pub(crate) fn lose_work(&self) {
        if !self.lock().v2.work.lost() {
            return;
        }
        let reason = "the connection was lost, and whether the turn goes on is unknown";
        let data = Json::from(json!({crate::reconnect::LOST: true}));
        let error = RpcError::new(ErrorCode::INTERNAL_ERROR, reason).with_data(data);
        self.end_work(End {
            stop: Err(error),
            meta: None,
        });
    }

    /// The work for the prompt has ended, and its turn with it.
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

/// The tokens that the end of the work reports, where [`crate::v2::Usage`] has put them.
fn tokens(end: &End) -> Option<TokenUsage> {
    #[derive(Deserialize)]
    struct Ours {
        usage: TokenUsage,
    }
    let ours: Ours = end.meta.as_ref()?.get("acp-sdk")?;
    Some(ours.usage)
}
