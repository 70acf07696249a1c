//! Events of a session as steps, the same for all dialects.

use std::borrow::Cow;

use acp_sdk::conversation::{Conversation, ItemKind, Role, is_final};
use acp_sdk::v1::{
    AvailableCommand, ContentBlock, MessageId, Plan, RequestPermissionRequest, SessionUpdate,
    StopReason, ToolCall, ToolCallId, UsageUpdate,
};
use acp_server::event::{Event, EventBody, QuestionId, TokenUsage, TurnEvent};

/// The most steps that an event has.
pub(crate) const MOST_STEPS: u64 = 3;

/// A step of a turn.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "encoded one at a time")]
pub(crate) enum Step {
    TurnStarted,
    /// Text of the agent's answer.
    Text(String),
    /// Text of its reasoning.
    Thought(String),
    CallStarted(ToolCall),
    /// As the call is at its end.
    CallEnded(ToolCall),
    Usage(UsageUpdate),
    /// The whole plan.
    Plan(Plan),
    /// The slash commands, which have changed.
    Commands(Vec<AvailableCommand>),
    /// Tokens of the turn, which ends.
    Tokens(TokenUsage),
    PermissionAsked(QuestionId, RequestPermissionRequest),
    /// The turn was cancelled; the agent's last message.
    Cancelled(String),
    /// Without a stop reason, the turn has failed, for this reason.
    TurnEnded(Option<StopReason>, Option<String>),
}

/// The turn that runs, folded from its events.
pub(crate) struct Fold {
    turn: Conversation,
    /// The user's message that the turn answers.
    message: Option<MessageId>,
    /// The bytes that are kept of a turn.
    limit: usize,
}

impl Default for Fold {
    fn default() -> Self {
        Self::with_limit(Conversation::DEFAULT_LIMIT)
    }
}

impl Fold {
    /// Creates a fold that keeps about `limit` bytes of a turn.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            turn: Conversation::with_limit(limit),
            message: None,
            limit,
        }
    }

    /// Returns the bytes of the turn that are not kept.
    pub(crate) fn omitted(&self) -> u64 {
        self.turn.omitted().bytes
    }

    /// Returns the user's message that the turn answers.
    pub(crate) fn message(&self) -> Option<&MessageId> {
        self.message.as_ref()
    }

    /// Returns the text of the agent's last message in the turn.
    pub(crate) fn output(&self) -> String {
        let mut messages = self.messages().rev();
        messages.next().map(Cow::into_owned).unwrap_or_default()
    }

    /// Returns the text of all messages of the agent in the turn.
    pub(crate) fn text(&self) -> String {
        self.messages().collect()
    }

    fn messages(&self) -> impl DoubleEndedIterator<Item = Cow<'_, str>> {
        self.turn.items().filter_map(|item| match &item.kind {
            ItemKind::Message(message) if message.role == Role::Agent => Some(message.text()),
            _ => None,
        })
    }

    /// Takes the next event in, and returns its steps, [`MOST_STEPS`] at most.
    pub(crate) fn event(&mut self, event: Event) -> Vec<Step> {
        match event.body {
            EventBody::Update(update) => self.update(update),
            EventBody::Turn(event) => self.turn_event(event),
            EventBody::Unknown(_) => Vec::new(),
        }
    }

    fn update(&mut self, update: SessionUpdate) -> Vec<Step> {
        let call = match &update {
            SessionUpdate::ToolCall(call) => Some(call.tool_call_id.clone()),
            SessionUpdate::ToolCallUpdate(call) => Some(call.tool_call_id.clone()),
            _ => None,
        };
        let before = call.as_ref().map(|id| self.call(id).map(has_ended));
        // Only what follows is shown.
        let _ = self.turn.apply(&update);
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                self.message = self.message.take().or(chunk.message_id);
                Vec::new()
            }
            SessionUpdate::AgentMessageChunk(chunk) => text(chunk.content, Step::Text),
            SessionUpdate::AgentThoughtChunk(chunk) => text(chunk.content, Step::Thought),
            SessionUpdate::UsageUpdate(usage) => vec![Step::Usage(usage)],
            SessionUpdate::Plan(plan) => vec![Step::Plan(plan)],
            SessionUpdate::AvailableCommandsUpdate(update) => {
                vec![Step::Commands(update.available_commands)]
            }
            _ => {
                let now = call.as_ref().and_then(|id| self.call(id));
                let (Some(before), Some(now)) = (before, now) else {
                    return Vec::new();
                };
                let mut steps = Vec::new();
                if before.is_none() {
                    steps.push(Step::CallStarted(now.clone()));
                }
                if has_ended(now) && before != Some(true) {
                    steps.push(Step::CallEnded(now.clone()));
                }
                steps
            }
        }
    }

    fn call(&self, id: &ToolCallId) -> Option<&ToolCall> {
        self.turn.tool_call(id).map(|(_, call)| call)
    }

    fn turn_event(&mut self, event: TurnEvent) -> Vec<Step> {
        match event {
            TurnEvent::TurnStarted { .. } => {
                *self = Self::with_limit(self.limit);
                vec![Step::TurnStarted]
            }
            TurnEvent::PermissionAsked {
                question, request, ..
            } => vec![Step::PermissionAsked(question, request)],
            TurnEvent::TurnEnded {
                stop_reason,
                error,
                usage,
                ..
            } => {
                let mut steps: Vec<_> = usage.map(Step::Tokens).into_iter().collect();
                if stop_reason == Some(StopReason::Cancelled) {
                    steps.push(Step::Cancelled(self.output()));
                }
                steps.push(Step::TurnEnded(stop_reason, error));
                steps
            }
            // Child sessions and forms have no place in any dialect.
            TurnEvent::PermissionAnswered { .. }
            | TurnEvent::ElicitationAsked { .. }
            | TurnEvent::ElicitationAnswered { .. }
            | TurnEvent::ChildStarted { .. }
            | TurnEvent::ChildUpdate { .. }
            | TurnEvent::ChildEnded { .. } => Vec::new(),
        }
    }
}

fn has_ended(call: &ToolCall) -> bool {
    is_final(call.status.as_ref())
}

fn text(content: ContentBlock, step: fn(String) -> Step) -> Vec<Step> {
    match content {
        ContentBlock::Text(text) => vec![step(text.text)],
        _ => Vec::new(),
    }
}

/// Returns whether a turn begins with the event.
pub(crate) fn is_start(event: &Event) -> bool {
    matches!(event.body, EventBody::Turn(TurnEvent::TurnStarted { .. }))
}
