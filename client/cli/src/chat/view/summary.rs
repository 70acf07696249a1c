//! What a turn and a session amount to: its end, plan, usage and outputs, and the live lines.

use std::time::Duration;

use acp_sdk::conversation::Item;
use acp_sdk::v1::{PlanEntryStatus, StopReason, UsageUpdate};

use super::super::style::{Colour, Face, fit};
use super::super::tools::{self, seconds, spinner};
use super::{Last, View};
use crate::text;
use acp_client::Outcome;

impl View {
    /// Returns the end of a turn as a line.
    pub(in super::super) fn outcome(&mut self, outcome: &Outcome, width: usize) -> String {
        self.answer.clone_from(&outcome.text);
        let mut shown = self.end(width);
        let mut parts = vec![match &outcome.stop_reason {
            StopReason::EndTurn => seconds(outcome.elapsed),
            StopReason::Cancelled => format!("cancelled after {}", seconds(outcome.elapsed)),
            reason => format!("ended with {reason} after {}", seconds(outcome.elapsed)),
        }];
        if let Some(tokens) = outcome.tokens {
            let (input, output) = (tokens.input_tokens, tokens.output_tokens);
            parts.push(format!("{input} tokens in, {output} out"));
        }
        // The session's cost follows, which is the same in its first turn.
        let session = outcome.usage.as_ref().and_then(|usage| usage.cost.as_ref());
        let turn = outcome
            .turn_cost
            .as_ref()
            .filter(|cost| session != Some(cost));
        parts.extend(text::cost(turn));
        if outcome.usage.is_some() {
            parts.push(self.usage());
        }
        let face = match &outcome.stop_reason {
            StopReason::EndTurn => Face::DIM,
            _ => Face::of(Colour::Yellow),
        };
        let line = fit(&parts.join(" · "), width.saturating_sub(1));
        shown += &format!("{}\n\n", self.paint.text(face, &line));
        shown
    }

    /// Returns the usage that the agent reported last.
    pub(in super::super) fn reported(&self) -> Option<&UsageUpdate> {
        self.conversation.usage()
    }

    /// Returns the tokens and the cost so far.
    pub(in super::super) fn usage(&self) -> String {
        match self.conversation.usage() {
            Some(usage) => {
                let line = text::usage(usage);
                line.strip_prefix("usage: ").unwrap_or(&line).to_owned()
            }
            None => "the agent has reported no usage".to_owned(),
        }
    }

    /// Returns the whole output of a tool call, by its number.
    pub(in super::super) fn output(&self, number: &str, width: usize) -> String {
        let parsed = number.parse().ok();
        if !number.is_empty() && parsed.is_none() {
            return "/output NUMBER takes the number at the end of a cut line.\n".to_owned();
        }
        let Some(id) = self.tools.cut(parsed) else {
            return "There is no such output that was cut.\n".to_owned();
        };
        let call = self.conversation.item(id).and_then(Item::as_tool_call);
        match call {
            Some(call) => tools::whole(call, width, self.paint),
            None => "The output is not kept any more.\n".to_owned(),
        }
    }

    /// Returns the text of the last turn.
    pub(in super::super) fn answer(&self) -> String {
        self.answer.clone()
    }

    /// Returns the current plan.
    pub(in super::super) fn plan(&self, width: usize) -> String {
        let Some(plan) = self.conversation.plan() else {
            return "There is no plan.\n".to_owned();
        };
        let mut shown = format!("{}\n", self.paint.text(Face::BOLD, "Plan"));
        for entry in &plan.entries {
            let (sign, face) = match entry.status {
                PlanEntryStatus::Completed => ("✓", Face::DIM),
                PlanEntryStatus::InProgress => ("▸", Face::BOLD),
                _ => ("○", Face::default()),
            };
            let line = fit(&entry.content, width.saturating_sub(5));
            shown += &format!("  {sign} {}\n", self.paint.text(face, &line));
        }
        shown
    }

    /// Returns the live lines of a running turn.
    pub(in super::super) fn live(
        &self,
        elapsed: Duration,
        width: usize,
        height: usize,
    ) -> Vec<String> {
        let room = height.saturating_sub(8).clamp(1, 8);
        let mut lines = Vec::new();
        if matches!(self.last, Last::Text | Last::Thought) {
            lines.push(String::new());
        }
        let calls = self.tools.live(&self.conversation, width);
        let more = calls.len().saturating_sub(room);
        lines.extend(calls.into_iter().take(room));
        if more > 0 {
            lines.push(format!("  … {more} more tool calls"));
        }
        let current = self.conversation.plan().filter(|_| self.plan_changed);
        let current = current.and_then(|plan| {
            let mut entries = plan.entries.iter();
            entries.find(|entry| entry.status == PlanEntryStatus::InProgress)
        });
        let task = current.map_or_else(|| "working".to_owned(), |entry| entry.content.clone());
        let tail = format!(" · {} · Esc cancels", seconds(elapsed));
        let task = fit(&task, width.saturating_sub(tail.len() + 4));
        lines.push(format!("{} {task}{tail}", spinner(elapsed)));
        lines
    }
}
