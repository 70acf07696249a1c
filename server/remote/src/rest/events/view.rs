//! What the frames of a turn's events say of the turn.

use std::borrow::Cow;

use acp_sdk::conversation::{Change, Conversation, Item, ItemId};
use acp_sdk::v1::{MessageId, SessionUpdate, StopReason, ToolCall};

use acp_server::event::{Event, EventBody, TurnEvent};

/// The most bytes of the agent's messages that are kept.
const MOST_BYTES: usize = 1 << 20;

/// The state of a session as the events up to one of them tell it. It needs the events of the
/// running turn only.
#[derive(Debug)]
pub(super) struct View {
    /// The number of the event with which the latest turn began.
    pub(super) turn: Option<u64>,
    /// The user's message in that turn.
    pub(super) message_id: Option<MessageId>,
    /// Messages of the agent.
    pub(super) steps: u64,
    /// Whether the latest turn did what it was to do, if it has ended.
    pub(super) success: Option<bool>,
    /// The agent's messages in the latest turn, and what separates them.
    conversation: Conversation,
    /// The agent's last message.
    output: Option<ItemId>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            turn: None,
            message_id: None,
            steps: 0,
            success: None,
            conversation: Conversation::with_limit(MOST_BYTES),
            output: None,
        }
    }
}

impl View {
    pub(super) fn observe(&mut self, event: &Event) {
        match &event.body {
            EventBody::Update(update) => self.update(update),
            EventBody::Turn(TurnEvent::TurnStarted { turn, .. }) => {
                *self = Self {
                    turn: Some(turn.0),
                    ..Self::default()
                };
            }
            EventBody::Turn(TurnEvent::TurnEnded { stop_reason, .. }) => {
                self.success = Some(*stop_reason == Some(StopReason::EndTurn));
            }
            _ => {}
        }
    }

    fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                self.message_id.clone_from(&chunk.message_id);
            }
            SessionUpdate::AgentMessageChunk(_) => {
                for change in self.conversation.apply(update) {
                    self.steps += u64::from(matches!(change, Change::Added(_)));
                    self.output = change.item().or(self.output);
                }
            }
            // It separates messages. Its content would take the place of theirs.
            SessionUpdate::ToolCall(call) => {
                let call = ToolCall::new(call.tool_call_id.clone(), "");
                let _ = self.conversation.apply(&call.into());
            }
            _ => {}
        }
    }

    /// Returns the agent's last message, of which the beginning may be missing.
    pub(super) fn output(&self) -> Cow<'_, str> {
        let message = self.last_message().and_then(Item::as_message);
        message.map(|message| message.text()).unwrap_or_default()
    }

    /// Returns how many bytes of the beginning are missing.
    pub(super) fn output_omitted(&self) -> usize {
        self.last_message().map_or(0, |item| item.omitted)
    }

    fn last_message(&self) -> Option<&Item> {
        self.output.and_then(|id| self.conversation.item(id))
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::ContentChunk;

    use super::*;

    fn message(view: &mut View, text: &str) {
        let chunk = ContentChunk::new(text).with_message_id("m");
        view.update(&SessionUpdate::AgentMessageChunk(chunk));
    }

    #[test]
    fn an_output_without_its_beginning_says_so() {
        let mut view = View::default();
        message(&mut view, "begin, ");
        assert_eq!((&*view.output(), view.output_omitted()), ("begin, ", 0));
        let large = "x".repeat(MOST_BYTES * 3 / 2);
        message(&mut view, &large);
        message(&mut view, " and end");
        let output = view.output();
        // Nothing is missing in the middle.
        let rest = output.strip_suffix(" and end").unwrap();
        assert!(!rest.is_empty() && rest.bytes().all(|byte| byte == b'x'));
        let all = "begin, ".len() + large.len() + " and end".len();
        assert_eq!(view.output_omitted(), all - output.len());
        assert_eq!(view.steps, 1);
    }
}
