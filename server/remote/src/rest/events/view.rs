//! What the frames of a turn's events say of the turn.

use std::borrow::Cow;

use acp_sdk::conversation::{Change, Conversation, Item, ItemId};
use acp_sdk::v1::{MessageId, RequestPermissionRequest, SessionUpdate, StopReason, ToolCall};

use acp_server::event::{Event, EventBody, TurnEvent};

/// The most bytes of the agent's messages that are kept.
const MOST_BYTES: usize = 1 << 20;

/// The state of a session as the events up to one of them tell it. It needs the events of the
/// running turn only.
#[derive(Debug)]
pub(in crate::rest) struct View {
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
    /// The tool calls of the latest turn.
    calls: Conversation,
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
            calls: Conversation::with_limit(MOST_BYTES),
            output: None,
        }
    }
}

impl View {
    pub(in crate::rest) fn observe(&mut self, event: &Event) {
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
            EventBody::Turn(TurnEvent::PermissionAsked { request, .. }) => {
                // What the request says of the call goes before what was said earlier.
                let _ = self.calls.apply(&request.tool_call.clone().into());
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
                let _ = self.calls.apply(update);
                let call = ToolCall::new(call.tool_call_id.clone(), "");
                let _ = self.conversation.apply(&call.into());
            }
            SessionUpdate::ToolCallUpdate(_) => {
                let _ = self.calls.apply(update);
            }
            _ => {}
        }
    }

    /// Returns all that is known of the tool call that permission is asked for, and how many bytes of
    /// it are missing.
    pub(super) fn asked(&self, request: &RequestPermissionRequest) -> Option<(&ToolCall, usize)> {
        let (id, call) = self.calls.tool_call(&request.tool_call.tool_call_id)?;
        let item = self.calls.item(id)?;
        Some((call, item.omitted))
    }

    /// Returns the tool calls, without the beginning of what is very long.
    pub(in crate::rest) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls.items().filter_map(Item::as_tool_call)
    }

    /// Returns the agent's last message, of which the beginning may be missing.
    pub(in crate::rest) fn output(&self) -> Cow<'_, str> {
        let message = self.last_message().and_then(Item::as_message);
        message.map(|message| message.text()).unwrap_or_default()
    }

    /// Returns how many bytes of the beginning are missing.
    pub(in crate::rest) fn output_omitted(&self) -> usize {
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
    fn what_earlier_events_say_of_a_call_is_part_of_what_is_asked() {
        let mut view = View::default();
        let mut observe = |text: &str| view.observe(&Event::parse(1, text));
        observe(
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run","kind":"execute","rawInput":{"command":"rm x"}}"#,
        );
        observe(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/w/x"}]}"#,
        );
        let asked = r#"{"event":"permission_asked","question":3,"request":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"Run it"},"options":[]}}"#;
        observe(asked);
        let EventBody::Turn(TurnEvent::PermissionAsked { request, .. }) =
            Event::parse(3, asked).body
        else {
            panic!("no question");
        };
        let (call, omitted) = view.asked(&request).unwrap();
        let call = serde_json::to_value(call).unwrap();
        assert_eq!(call["rawInput"]["command"], "rm x");
        assert_eq!(call["locations"][0]["path"], "/w/x");
        assert_eq!((call["title"].as_str(), omitted), (Some("Run it"), 0));
        // One that was never announced is asked for as it is.
        let mut other = View::default();
        other.observe(&Event::parse(3, asked));
        assert_eq!(other.asked(&request).unwrap().0.title, "Run it");
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
