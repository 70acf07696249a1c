//! The outcome of a turn.

mod tokens;

use std::fmt;
use std::time::Duration;

use acp_sdk::conversation::{Conversation, ItemKind, Message, Omitted, Role};
use acp_sdk::v1::{Cost, Plan, SessionUpdate, StopReason, ToolCall, UsageUpdate};
use tokio::time::Instant;

pub(crate) use self::tokens::CostBefore;
pub use self::tokens::TokenUsage;

/// Limit in bytes of collected text, thoughts and tool calls.
const MOST_BYTES: usize = 64 << 20;

/// The summary of a turn: text, thoughts, tool calls, plan and usage.
///
/// Memory: the latest 64 MiB of text and tool calls; [`truncated`](Self::truncated) is set beyond
/// that.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The reason for the end of the turn.
    pub stop_reason: StopReason,
    /// The text of the agent. Messages are separated by a blank line; they are those of a
    /// [`Conversation`].
    pub text: String,
    /// The thoughts of the agent, separated likewise.
    pub thoughts: String,
    /// The tool calls in the order of their first update, with all updates applied.
    pub tool_calls: Vec<ToolCall>,
    /// The latest plan.
    pub plan: Option<Plan>,
    /// The tokens in use and the cost of the session, as last reported in the turn.
    pub usage: Option<UsageUpdate>,
    /// The tokens used by the turn, if the agent's response to the prompt contains them.
    pub tokens: Option<TokenUsage>,
    /// The cost of the turn: what the [cost of the session](Self::cost) has grown by. `None` if the
    /// agent reports no cost, or has not reported that of an earlier turn.
    pub turn_cost: Option<Cost>,
    /// The time from the prompt to the end of the turn.
    pub elapsed: Duration,
    /// Whether content is missing, because it exceeded the limits.
    pub truncated: bool,
    /// The titles of tool calls that changed something although nobody allowed them. They ended the
    /// turn.
    pub not_allowed: Vec<String>,
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
    /// Made for the first update that is part of an outcome.
    conversation: Option<Box<Conversation>>,
    begun: Instant,
    cost_before: CostBefore,
    tokens: Option<TokenUsage>,
    elapsed: Duration,
    not_allowed: Vec<String>,
}

/// Returns the separator between `text` and the next message: a blank line.
pub fn separator(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    }
}

impl Gathering {
    pub(super) fn new(begun: Instant, cost_before: CostBefore) -> Self {
        Self {
            conversation: None,
            begun,
            cost_before,
            tokens: None,
            elapsed: Duration::ZERO,
            not_allowed: Vec::new(),
        }
    }

    /// Records a tool call that nobody allowed.
    pub(super) fn not_allowed(&mut self, title: String) {
        self.not_allowed.push(title);
    }

    /// Records the cost of the session after another client's turn, while this one waits.
    pub(super) fn cost_before(&mut self, cost: &Cost) {
        self.cost_before = CostBefore::Known(cost.clone());
    }

    pub(super) fn so_far(&self) -> Outcome {
        let mut outcome = outcome(self.conversation.as_deref().cloned());
        outcome.turn_cost = self.cost_before.until(outcome.cost());
        outcome.tokens = self.tokens;
        outcome.elapsed = self.begun.elapsed();
        outcome.not_allowed.clone_from(&self.not_allowed);
        outcome
    }

    /// Records the end of the turn.
    pub(super) fn end(&mut self, tokens: Option<TokenUsage>) {
        self.tokens = tokens;
        self.elapsed = self.begun.elapsed();
    }

    /// Returns the outcome.
    pub(super) fn finish(&mut self, stop_reason: StopReason) -> Outcome {
        let empty = Self::new(self.begun, CostBefore::Unknown);
        let gathered = std::mem::replace(self, empty);
        let mut outcome = outcome(gathered.conversation.map(|conversation| *conversation));
        outcome.turn_cost = gathered.cost_before.until(outcome.cost());
        outcome.stop_reason = stop_reason;
        outcome.tokens = gathered.tokens;
        outcome.elapsed = gathered.elapsed;
        outcome.not_allowed = gathered.not_allowed;
        outcome
    }

    pub(super) fn update(&mut self, update: &SessionUpdate) {
        // Other updates are not part of an outcome and must not take its place.
        if matches!(
            update,
            SessionUpdate::AgentMessageChunk(_)
                | SessionUpdate::AgentThoughtChunk(_)
                | SessionUpdate::ToolCall(_)
                | SessionUpdate::ToolCallUpdate(_)
                | SessionUpdate::Plan(_)
                | SessionUpdate::UsageUpdate(_)
        ) || is_of_version_2(update)
        {
            let gathered = self
                .conversation
                .get_or_insert_with(|| Box::new(Conversation::with_limit(MOST_BYTES)));
            let _ = gathered.apply(update);
        }
    }
}

/// Returns whether an update of version 2 without an equivalent in version 1 is part of an outcome.
fn is_of_version_2(update: &SessionUpdate) -> bool {
    let SessionUpdate::Unknown(update) = update else {
        return false;
    };
    let tag = update.tag();
    matches!(
        tag,
        "agent_message" | "agent_thought" | "tool_call_content_chunk"
    )
}

/// Summarises a turn. The stop reason is not that of the turn yet.
fn outcome(conversation: Option<Conversation>) -> Outcome {
    let conversation = conversation.unwrap_or_default();
    let mut outcome = Outcome {
        stop_reason: StopReason::EndTurn,
        text: String::new(),
        thoughts: String::new(),
        tool_calls: Vec::new(),
        plan: conversation.plan().cloned(),
        usage: conversation.usage().cloned(),
        tokens: None,
        turn_cost: None,
        elapsed: Duration::ZERO,
        truncated: conversation.omitted() != Omitted::default(),
        not_allowed: Vec::new(),
    };
    for item in conversation.into_items() {
        match item.kind {
            ItemKind::Message(message) => match message.role {
                Role::Thought => add(message, &mut outcome.thoughts),
                _ => add(message, &mut outcome.text),
            },
            ItemKind::ToolCall(call) => outcome.tool_calls.push(*call),
            _ => {}
        }
    }
    outcome
}

/// Adds the text of a message after a blank line.
fn add(message: Message, text: &mut String) {
    let next = message.into_text();
    if text.is_empty() {
        *text = next;
    } else if !next.is_empty() {
        text.push_str(separator(text));
        text.push_str(&next);
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{
        Content, ContentBlock, ContentChunk, PlanEntry, PlanEntryPriority, PlanEntryStatus,
        ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
    };
    use serde_json::json;

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
        let mut gathering = Gathering::new(Instant::now(), CostBefore::Nothing);
        for update in updates {
            gathering.update(&update);
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
        let done = ToolCallUpdate::new("1")
            .with_status(ToolCallStatus::Completed)
            .with_content(content.clone());
        let unannounced = ToolCallUpdate::new("2").with_title("Write");
        let outcome = gathered([
            SessionUpdate::ToolCall(announced.clone()),
            SessionUpdate::ToolCallUpdate(unannounced),
            SessionUpdate::ToolCallUpdate(done),
        ]);
        let expected = announced
            .with_status(ToolCallStatus::Completed)
            .with_content(content);
        assert_eq!(outcome.tool_calls, [expected, ToolCall::new("2", "Write")]);
    }

    #[test]
    fn messages_that_version_2_replaces_are_the_latest() {
        let replaced = json!({"sessionUpdate": "agent_message", "messageId": "1",
            "content": [{"type": "text", "text": "longer "}, {"type": "text", "text": "one"}]});
        let state = json!({"sessionUpdate": "state_update", "state": "idle"});
        let outcome = gathered([
            said_in("1", "one"),
            said_in("2", "two"),
            serde_json::from_value(replaced).unwrap(),
            serde_json::from_value(state).unwrap(),
        ]);
        assert_eq!(outcome.text, "longer one\n\ntwo");
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

    /// Content that was replaced takes no place, so the last text is never left out for it.
    #[test]
    fn replaced_content_does_not_count() {
        let long = "x".repeat(1 << 10);
        let content = || vec![ToolCallContent::Content(Content::new(block(&long)))];
        let entry = PlanEntry::new(&*long, PlanEntryPriority::Low, PlanEntryStatus::Pending);
        let text = [json!({"type": "text", "text": long})];
        let whole = |kind| {
            let update = json!({"sessionUpdate": kind, "messageId": "m", "content": text});
            serde_json::from_value(update).unwrap()
        };
        let changed = ToolCallUpdate::new("1")
            .with_content(content())
            .with_raw_output(acp_sdk::Json::new(&long).unwrap());
        let again = ToolCall::new("2", "Call").with_content(content());
        for update in [
            SessionUpdate::ToolCallUpdate(changed),
            SessionUpdate::ToolCall(again),
            SessionUpdate::Plan(Plan::new(vec![entry])),
            whole("agent_message"),
            whole("agent_thought"),
        ] {
            let mut gathering = Gathering::new(Instant::now(), CostBefore::Nothing);
            gathering.update(&update);
            let bytes = gathering.conversation.as_ref().unwrap().bytes();
            assert!(bytes > long.len(), "{update:?}");
            for _ in 0..100 {
                gathering.update(&update);
            }
            let after = gathering.conversation.as_ref().unwrap().bytes();
            assert_eq!(after, bytes, "{update:?}");
        }
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
