//! What the frames of a turn's events say of the turn.

use acp_sdk::v1::{MessageId, SessionUpdate, StopReason};

use super::text::text_of;
use crate::event::{Event, EventBody, TurnEvent};

/// The most bytes of an output that are kept.
const OUTPUT_BYTES: usize = 1 << 20;

/// The state of a session as the events up to one of them tell it. It needs the events of the
/// running turn only.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The number of the event with which the latest turn began.
    pub(super) turn: Option<u64>,
    /// The user's message in that turn.
    pub(super) message_id: Option<MessageId>,
    /// The agent's last message.
    pub(super) output: String,
    /// Messages of the agent.
    pub(super) steps: u64,
    /// Of the session, as the agent reported it last in the turn.
    pub(super) cost: Option<f64>,
    /// Whether the latest turn did what it was to do, if it has ended.
    pub(super) success: Option<bool>,
    speaking: Option<MessageId>,
}

impl View {
    pub(super) fn observe(&mut self, event: &Event) {
        match &event.body {
            EventBody::Update(update) => self.update(update),
            EventBody::Turn(TurnEvent::TurnStarted { turn }) => {
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
            SessionUpdate::AgentMessageChunk(chunk) => {
                if self.speaking.is_none() || self.speaking != chunk.message_id {
                    self.speaking.clone_from(&chunk.message_id);
                    self.output.clear();
                    self.steps += 1;
                }
                let text = text_of(chunk).unwrap_or_default();
                if self.output.len() + text.len() <= OUTPUT_BYTES {
                    self.output.push_str(text);
                }
            }
            SessionUpdate::ToolCall(_) => self.speaking = None,
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.as_ref().map(|cost| cost.amount);
                self.cost = cost.filter(|cost| cost.is_finite()).or(self.cost);
            }
            _ => {}
        }
    }
}
