//! The state of a session of version 2: its updates are converted, and an update ends the work for
//! a prompt.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::v1::{ErrorCode, StopReason, ToolCallId};
use acp_sdk::{Json, RpcError, v2};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

use super::{Inbox, TurnState};
use crate::session::TokenUsage;
use crate::v2::{Converted, Converter, End, Work, digest};

/// Maximum number of remembered tool calls of a turn. Older ones are not known to be its own.
const MOST_CALLS: usize = 1024;

/// The end of the work for a prompt.
type Ended = Result<StopReason, RpcError>;

#[derive(Debug, Default)]
pub(super) struct StateV2 {
    pub(super) converter: Converter,
    work: Work,
    /// The tool calls that the turn has begun and that are not in the background, as digests.
    foreground: VecDeque<u64>,
    /// The turn that the agent works for, and the receiver of its end.
    turn: Option<(Arc<TurnState>, oneshot::Sender<Ended>)>,
}

impl StateV2 {
    /// Records which tool calls are foreground work.
    fn record_calls(&mut self, update: &v2::SessionUpdate) {
        match update {
            v2::SessionUpdate::ToolCallUpdate(call) if self.turn.is_some() => {
                let call = digest(call.tool_call_id.as_str());
                if !self.foreground.contains(&call) {
                    self.foreground.push_back(call);
                }
                if self.foreground.len() > MOST_CALLS {
                    self.foreground.pop_front();
                }
            }
            v2::SessionUpdate::StateUpdate(state) => {
                let background = background(state).iter().filter_map(|work| match work {
                    v2::BackgroundWork::ToolCall(call) => Some(call.tool_call_id.as_str()),
                    _ => None,
                });
                for call in background.map(digest) {
                    self.foreground.retain(|known| *known != call);
                }
            }
            _ => {}
        }
    }
}

fn background(state: &v2::StateUpdate) -> &[v2::BackgroundWork] {
    let background = match state {
        v2::StateUpdate::Running(state) => &state.background,
        v2::StateUpdate::Idle(state) => &state.background,
        v2::StateUpdate::RequiresAction(state) => &state.background,
        _ => &None,
    };
    background.as_deref().unwrap_or_default()
}

impl Inbox {
    /// Returns whether a question about a tool call is known to belong to the turn, and not to
    /// background work: only such a question is cancelled with the turn.
    pub(crate) fn is_foreground(&self, call: Option<&ToolCallId>) -> bool {
        let state = self.lock();
        call.is_some_and(|call| state.v2.foreground.contains(&digest(call.as_str())))
    }

    /// Converts an update. Also returns the end of the turn if the update is one; it is [passed
    /// on](Self::end_work) after the update was delivered.
    pub(crate) fn convert(&self, update: v2::SessionUpdate) -> (Converted, Option<End>) {
        let mut state = self.lock();
        let end = state.v2.work.update(&update);
        state.v2.record_calls(&update);
        (state.v2.converter.update(update), end)
    }

    /// Prepares for a prompt that is sent next. Returns a receiver of the end of its turn.
    pub(crate) fn begin_work(&self, turn: &Arc<TurnState>) -> oneshot::Receiver<Ended> {
        let (sender, ended) = oneshot::channel();
        let mut state = self.lock();
        state.v2.work.begin();
        state.v2.foreground.clear();
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
