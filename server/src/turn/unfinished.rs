//! What a session, or a child session, has begun in a turn and not finished.

use acp_sdk::conversation::is_final;
use acp_sdk::v1::{MessageId, SessionUpdate, ToolCallId};

use super::{Role, ends_message};
use crate::event::TurnId;

#[derive(Debug, Default)]
pub(super) struct Unfinished {
    calls: Vec<ToolCallId>,
    /// The message that chunks are being added to. Any other update ends it.
    message: Option<(Role, MessageId)>,
}

impl Unfinished {
    /// Notes what an update that is no chunk opens and finishes.
    pub(super) fn note(&mut self, update: &SessionUpdate) {
        if ends_message(update) {
            self.message = None;
        }
        if let Some(id) = opens(update) {
            self.calls.push(id.clone());
        } else if let Some(id) = finishes(update) {
            self.calls.retain(|call| call != id);
        }
    }

    /// Returns the id of the message that a chunk of this role belongs to. A new one has the next of
    /// the turn's `ids`.
    pub(super) fn message(&mut self, role: Role, turn: TurnId, ids: &mut u64) -> MessageId {
        match &self.message {
            Some((speaking, id)) if *speaking == role => id.clone(),
            _ => {
                *ids += 1;
                let id = MessageId::from(format!("message-{}-{ids}", turn.0));
                self.message = Some((role, id.clone()));
                id
            }
        }
    }

    pub(super) fn end_message(&mut self) {
        self.message = None;
    }

    pub(super) fn has_call(&self, id: &ToolCallId) -> bool {
        self.calls.contains(id)
    }

    pub(super) fn take_calls(&mut self) -> Vec<ToolCallId> {
        std::mem::take(&mut self.calls)
    }
}

/// The tool call that an update announces without finishing it.
fn opens(update: &SessionUpdate) -> Option<&ToolCallId> {
    match update {
        SessionUpdate::ToolCall(call) if !is_final(call.status.as_ref()) => {
            Some(&call.tool_call_id)
        }
        _ => None,
    }
}

/// The tool call that an update finishes.
fn finishes(update: &SessionUpdate) -> Option<&ToolCallId> {
    match update {
        SessionUpdate::ToolCallUpdate(change) if is_final(change.status.as_ref()) => {
            Some(&change.tool_call_id)
        }
        _ => None,
    }
}
