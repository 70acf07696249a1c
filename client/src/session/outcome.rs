//! The outcome of a turn.

mod spoken;
mod tokens;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use acp_sdk::json::UnknownVariant;
use acp_sdk::v1::{
    ContentChunk, Cost, MessageId, Plan, SessionUpdate, StopReason, ToolCall, ToolCallId,
    ToolCallUpdate, UsageUpdate,
};

use tokio::time::Instant;

use self::spoken::Spoken;
pub use self::tokens::TokenUsage;

/// Limit in bytes of collected text, thoughts and tool calls.
const MOST_BYTES: usize = 64 << 20;

/// The summary of a turn: text, thoughts, tool calls, plan and usage.
///
/// Memory: 64 MiB of text and tool calls; [`truncated`](Self::truncated) is set beyond that.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The reason for the end of the turn.
    pub stop_reason: StopReason,
    /// The text of the agent. Messages are separated by a blank line; a new one begins after a tool
    /// call and with another message id.
    pub text: String,
    /// The thoughts of the agent, separated likewise.
    pub thoughts: String,
    /// The tool calls in the order of their first update, with all updates applied.
    pub tool_calls: Vec<ToolCall>,
    /// The latest plan.
    pub plan: Option<Plan>,
    /// The tokens in use and the cost, as last reported.
    pub usage: Option<UsageUpdate>,
    /// The tokens used by the turn, if the agent's response to the prompt contains them.
    pub tokens: Option<TokenUsage>,
    /// The time from the prompt to the end of the turn.
    pub elapsed: Duration,
    /// Whether content is missing, because it exceeded the limits.
    pub truncated: bool,
}

impl Outcome {
    /// Returns the cost of the session so far.
    #[must_use]
    pub fn cost(&self) -> Option<&Cost> {
        self.usage.as_ref()?.cost.as_ref()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Collects an [`Outcome`].
#[derive(Debug)]
pub(super) struct Gathering {
    outcome: Outcome,
    begun: Instant,
    message: Spoken,
    thought: Spoken,
    /// The index of each tool call in the outcome; there may be thousands.
    calls: HashMap<ToolCallId, usize>,
    bytes: usize,
}

/// Detects where a message ends and the next begins.
#[derive(Debug, Default)]
pub(crate) struct Joint {
    id: Option<MessageId>,
    begun: bool,
    interrupted: bool,
}

impl Joint {
    /// Returns whether this chunk begins another message than the previous one.
    pub(crate) fn is_new_message(&mut self, chunk: &ContentChunk) -> bool {
        let other = chunk.message_id.is_some() && chunk.message_id != self.id;
        let new = self.begun && (self.interrupted || (other && self.id.is_some()));
        if chunk.message_id.is_some() {
            self.id.clone_from(&chunk.message_id);
        }
        (self.begun, self.interrupted) = (true, false);
        new
    }

    /// Records that a tool call separates the messages.
    pub(crate) fn interrupt(&mut self) {
        self.interrupted = true;
    }
}

/// Returns the separator between `text` and the next message: a blank line.
pub(crate) fn separator(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    }
}

impl Gathering {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            outcome: Outcome {
                stop_reason: StopReason::EndTurn,
                text: String::new(),
                thoughts: String::new(),
                tool_calls: Vec::new(),
                plan: None,
                usage: None,
                tokens: None,
                elapsed: Duration::ZERO,
                truncated: false,
            },
            begun,
            message: Spoken::default(),
            thought: Spoken::default(),
            calls: HashMap::new(),
            bytes: 0,
        }
    }

    pub(super) fn so_far(&self) -> Outcome {
        Outcome {
            elapsed: self.begun.elapsed(),
            ..self.outcome.clone()
        }
    }

    /// Records the end of the turn.
    pub(super) fn end(&mut self, tokens: Option<TokenUsage>) {
        self.outcome.tokens = tokens;
        self.outcome.elapsed = self.begun.elapsed();
    }

    /// Returns the outcome.
    pub(super) fn finish(&mut self, stop_reason: StopReason) -> Outcome {
        let empty = Self::new(self.begun);
        let mut outcome = std::mem::replace(self, empty).outcome;
        outcome.stop_reason = stop_reason;
        outcome
    }

    /// Adds an update of about `bytes` bytes.
    pub(super) fn update(&mut self, update: &SessionUpdate, bytes: usize) {
        match update {
            SessionUpdate::Plan(plan) => {
                self.outcome.plan = Some(plan.clone());
                return;
            }
            SessionUpdate::UsageUpdate(usage) => {
                self.outcome.usage = Some(usage.clone());
                return;
            }
            SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_)
            | SessionUpdate::ToolCall(_)
            | SessionUpdate::ToolCallUpdate(_)
            | SessionUpdate::Unknown(_) => {}
            _ => return,
        }
        if self.bytes + bytes > MOST_BYTES {
            self.outcome.truncated = true;
            return;
        }
        self.bytes += bytes;
        let Outcome { text, thoughts, .. } = &mut self.outcome;
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.message.append(text, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.thought.append(thoughts, chunk),
            SessionUpdate::ToolCall(call) => self.announced(call),
            SessionUpdate::ToolCallUpdate(call) => self.changed(call),
            // Updates of version 2 without an equivalent in version 1.
            SessionUpdate::Unknown(update) => match update.tag() {
                "agent_message" => self.message.replace(text, update),
                "agent_thought" => self.thought.replace(thoughts, update),
                "tool_call_content_chunk" => self.continued(update),
                _ => {}
            },
            _ => {}
        }
    }

    /// A chunk of a tool call's content that is too long to be repeated with each chunk.
    fn continued(&mut self, update: &UnknownVariant) {
        let id: Option<ToolCallId> = update.get("toolCallId").and_then(|id| id.parse().ok());
        let item = update.get("content").and_then(|item| item.parse().ok());
        match (id, item) {
            (Some(id), Some(item)) => self.call(&id).content.push(item),
            // A diff of version 2, which has another form in version 1.
            _ => self.outcome.truncated = true,
        }
    }

    fn announced(&mut self, call: &ToolCall) {
        *self.call(&call.tool_call_id) = call.clone();
    }

    fn changed(&mut self, update: &ToolCallUpdate) {
        merge(self.call(&update.tool_call_id), update.clone());
    }

    /// Returns a tool call. Creates it if necessary, because some agents update calls that they
    /// never announced.
    fn call(&mut self, id: &ToolCallId) -> &mut ToolCall {
        self.message.joint.interrupt();
        self.thought.joint.interrupt();
        let calls = &mut self.outcome.tool_calls;
        let index = *self.calls.entry(id.clone()).or_insert_with(|| {
            calls.push(ToolCall::new(id.clone(), ""));
            calls.len() - 1
        });
        &mut calls[index]
    }
}

/// Applies an update: omitted members are unchanged, lists are replaced.
///
/// Spec: <https://agentclientprotocol.com/protocol/v1/tool-calls#updating>
pub(crate) fn merge(call: &mut ToolCall, update: ToolCallUpdate) {
    fn set<T>(field: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *field = value;
        }
    }
    fn set_some<T>(field: &mut Option<T>, value: Option<T>) {
        if value.is_some() {
            *field = value;
        }
    }
    set(&mut call.title, update.title);
    set(&mut call.content, update.content);
    set(&mut call.locations, update.locations);
    set_some(&mut call.name, update.name);
    set_some(&mut call.kind, update.kind);
    set_some(&mut call.status, update.status);
    set_some(&mut call.raw_input, update.raw_input);
    set_some(&mut call.raw_output, update.raw_output);
    set_some(&mut call.meta, update.meta);
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{
        Content, ContentBlock, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCallContent,
        ToolCallStatus, ToolKind,
    };

    use super::super::weight::weight;
    use super::*;

    fn block(text: &str) -> ContentBlock {
        ContentBlock::from(text)
    }

    fn said(text: &str) -> SessionUpdate {
        SessionUpdate::AgentMessageChunk(ContentChunk::new(block(text)))
    }

    fn said_in(id: &str, text: &str) -> SessionUpdate {
        let chunk = ContentChunk::new(block(text)).with_message_id(id);
        SessionUpdate::AgentMessageChunk(chunk)
    }

    fn called(id: &str) -> SessionUpdate {
        SessionUpdate::ToolCall(ToolCall::new(id, "Call"))
    }

    fn gathered(updates: impl IntoIterator<Item = SessionUpdate>) -> Outcome {
        let mut gathering = Gathering::new(Instant::now());
        for update in updates {
            gathering.update(&update, weight(&update));
        }
        gathering.finish(StopReason::EndTurn)
    }

    #[test]
    fn chunks_are_joined_and_messages_are_kept_apart() {
        let text = |updates: &[SessionUpdate]| gathered(updates.to_vec()).text;
        assert_eq!(text(&[said("a"), said("b\n")]), "ab\n");
        assert_eq!(text(&[called("1"), said("a")]), "a");
        assert_eq!(text(&[said("a"), called("1"), said("b")]), "a\n\nb");
        assert_eq!(text(&[said("a\n"), called("1"), said("b")]), "a\n\nb");
        assert_eq!(text(&[said_in("1", "a"), said_in("1", "b")]), "ab");
        assert_eq!(text(&[said_in("1", "a"), said_in("2", "b")]), "a\n\nb");
        assert_eq!(text(&[said("a"), said_in("2", "b"), said("c")]), "abc");
    }

    #[test]
    fn thoughts_are_no_text() {
        let thought = SessionUpdate::AgentThoughtChunk(ContentChunk::new(block("hm")));
        let outcome = gathered([thought, said("a")]);
        assert_eq!(
            (outcome.thoughts.as_str(), outcome.text.as_str()),
            ("hm", "a")
        );
    }

    #[test]
    fn updates_of_a_tool_call_are_merged() {
        let content = vec![ToolCallContent::Content(Content::new(block("done")))];
        let announced = ToolCall::new("1", "Read").with_kind(ToolKind::Read);
        let running = ToolCallUpdate::new("1").with_status(ToolCallStatus::InProgress);
        let done = ToolCallUpdate::new("1")
            .with_status(ToolCallStatus::Completed)
            .with_content(content.clone());
        let unannounced = ToolCallUpdate::new("2").with_title("Write");
        let outcome = gathered([
            SessionUpdate::ToolCall(announced),
            SessionUpdate::ToolCallUpdate(running),
            SessionUpdate::ToolCallUpdate(unannounced),
            SessionUpdate::ToolCallUpdate(done),
        ]);
        let expected = ToolCall::new("1", "Read")
            .with_kind(ToolKind::Read)
            .with_status(ToolCallStatus::Completed)
            .with_content(content);
        assert_eq!(outcome.tool_calls, [expected, ToolCall::new("2", "Write")]);
    }

    #[test]
    fn a_call_that_is_announced_again_begins_anew() {
        let done = ToolCallUpdate::new("1").with_status(ToolCallStatus::Failed);
        let outcome = gathered([
            called("1"),
            SessionUpdate::ToolCallUpdate(done),
            called("1"),
        ]);
        assert_eq!(outcome.tool_calls, [ToolCall::new("1", "Call")]);
    }

    #[test]
    fn plan_and_usage_are_the_latest() {
        let plan = |word: &str| {
            let entry = PlanEntry::new(word, PlanEntryPriority::Low, PlanEntryStatus::Pending);
            Plan::new(vec![entry])
        };
        let usage = |used| UsageUpdate::new(used, 100_u64).with_cost(Cost::new(0.5, "EUR"));
        let outcome = gathered([
            SessionUpdate::Plan(plan("old")),
            SessionUpdate::UsageUpdate(usage(1_u64)),
            SessionUpdate::Plan(plan("new")),
            SessionUpdate::UsageUpdate(usage(2_u64)),
        ]);
        assert_eq!(outcome.plan, Some(plan("new")));
        assert_eq!(outcome.usage.as_ref().map(|usage| usage.used), Some(2));
        assert_eq!(
            outcome.cost().map(|cost| cost.currency.as_str()),
            Some("EUR")
        );
    }

    #[test]
    fn what_is_gathered_is_bounded() {
        let big = "x".repeat(1 << 20);
        let outcome = gathered((0..100).map(|_| said(&big)));
        assert!(outcome.truncated);
        assert!(outcome.text.len() <= MOST_BYTES && outcome.text.len() > MOST_BYTES / 2);
        assert!(!gathered([said(&big)]).truncated);
    }
}
