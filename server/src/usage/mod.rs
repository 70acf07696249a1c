//! What turns used: time, tokens and cost, from the events of their session.
//!
//! This is the one place that reads costs and token counts from events.

mod costs;
mod fold;
mod of_turn;

pub use costs::Costs;
pub use fold::UsageFold;
pub use of_turn::{of_turn, of_turn_with_end, of_turn_with_events};

use acp_sdk::v1::StopReason;
use serde::{Deserialize, Serialize};

use crate::event::{TokenUsage, TurnId};
use crate::store::SessionRecord;

/// A turn, and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// The turn.
    pub turn: TurnId,
    /// Name and version of the client that sent the prompt, if the log has them.
    pub client: Option<String>,
    /// The model with which it began, if the log has it.
    #[serde(default)]
    pub model: Option<String>,
    /// Milliseconds since 1970; `None` if it is unknown.
    pub started_at: Option<u64>,
    /// `None` while the turn runs.
    pub end: Option<TurnEnd>,
    /// As the agent counted them.
    pub tokens: TokenUsage,
    /// The increase of the totals that the agent reported. Without a currency: none was reported.
    pub costs: Costs,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Milliseconds since 1970; `None` if it is unknown.
    pub at: Option<u64>,
    /// `None` if the turn failed.
    pub stop_reason: Option<StopReason>,
    /// Why the turn failed.
    pub error: Option<String>,
}

impl TurnUsage {
    fn new(turn: TurnId, started_at: Option<u64>) -> Self {
        Self {
            turn,
            client: None,
            model: None,
            started_at,
            end: None,
            tokens: TokenUsage::default(),
            costs: Costs::default(),
        }
    }

    /// Returns the milliseconds from the start to the end; `None` while the turn runs, or if a time
    /// is unknown.
    pub fn duration(&self) -> Option<u64> {
        let ended_at = self.end.as_ref()?.at?;
        // The clock of the system may have been set back.
        Some(ended_at.saturating_sub(self.started_at?))
    }

    /// Returns what is known of duration, tokens and cost: `1.250 s, 15 tokens, 0.1 USD`.
    pub fn text(&self) -> Option<String> {
        let tokens = self.tokens.total_tokens;
        let known = [
            self.duration().map(seconds),
            tokens.map(|tokens| format!("{tokens} tokens")),
            self.costs.text(),
        ];
        let known: Vec<_> = known.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.join(", "))
    }

    /// Returns whether the turn is one that a fork has copied from its source, where it counts.
    pub fn is_copied(&self, record: &SessionRecord) -> bool {
        let copied = record.forked_from.as_ref();
        copied.is_some_and(|(_, last)| self.turn.0 <= *last)
    }

    /// Returns whether the turn ended with the stop reason `end_turn`; `None` while it runs.
    pub fn success(&self) -> Option<bool> {
        let end = self.end.as_ref()?;
        Some(end.stop_reason == Some(StopReason::EndTurn))
    }
}

/// Returns a duration in seconds: `1.250 s`.
pub fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03} s", milliseconds / 1_000, milliseconds % 1_000)
}

/// Sums over turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageTotals {
    /// The number of turns.
    pub turns: u64,
    /// Milliseconds of the turns that have ended and whose times are known.
    pub duration: u64,
    /// As agents counted them.
    pub tokens: TokenUsage,
    /// Of all turns, for each currency.
    pub costs: Costs,
}

impl UsageTotals {
    /// Adds a turn.
    pub fn add(&mut self, turn: &TurnUsage) {
        self.turns += 1;
        self.duration = self.duration.saturating_add(turn.duration().unwrap_or(0));
        self.tokens.add(&turn.tokens);
        self.costs.add_all(&turn.costs);
    }
}
