//! The result of a call.

use std::time::Duration;

use acp_sdk::v1::{Cost, Plan, SessionId, StopReason, ToolCall, UsageUpdate};
use serde::{Deserialize, Serialize};

use crate::session::{Outcome, TokenUsage};

/// The result of an external agent's call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskResult {
    /// The agent's text.
    pub text: String,
    /// Further data about the call.
    pub metadata: TaskMetadata,
}

/// Data about a call besides its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The agent's name.
    pub agent: String,
    /// The id of the call's session.
    pub session_id: SessionId,
    /// The stop reason of the turn: `cancelled` if the call was cancelled or timed out.
    pub stop_reason: StopReason,
    /// Whether the turn was cancelled by the timeout.
    pub timed_out: bool,
    /// The agent's thoughts.
    pub thoughts: String,
    /// The tool calls in order of their start, with all updates applied.
    pub tool_calls: Vec<ToolCall>,
    /// The latest plan.
    pub plan: Option<Plan>,
    /// The cost of the session.
    pub cost: Option<Cost>,
    /// The tokens that the turn used, if the agent reports them.
    pub tokens: Option<TokenUsage>,
    /// The cost of the turn, see [`Outcome::turn_cost`].
    #[serde(default)]
    pub turn_cost: Option<Cost>,
    /// The tokens in use and the context size, as last reported by the agent.
    pub usage: Option<UsageUpdate>,
    /// The duration of the call, in seconds.
    #[serde(with = "seconds", rename = "elapsedSeconds")]
    pub elapsed: Duration,
    /// Whether output is missing, because it exceeded the limits.
    pub truncated: bool,
    /// The titles of tool calls that changed something although nobody allowed them. They ended the
    /// turn.
    #[serde(default)]
    pub not_allowed: Vec<String>,
}

impl TaskResult {
    pub(super) fn new(
        agent: String,
        session_id: SessionId,
        outcome: Outcome,
        timed_out: bool,
        elapsed: Duration,
    ) -> Self {
        let cost = outcome.cost().cloned();
        Self {
            text: outcome.text,
            metadata: TaskMetadata {
                agent,
                session_id,
                stop_reason: outcome.stop_reason,
                timed_out,
                thoughts: outcome.thoughts,
                tool_calls: outcome.tool_calls,
                plan: outcome.plan,
                cost,
                tokens: outcome.tokens,
                turn_cost: outcome.turn_cost,
                usage: outcome.usage,
                elapsed,
                truncated: outcome.truncated,
                not_allowed: outcome.not_allowed,
            },
        }
    }
}

impl std::fmt::Display for TaskResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Serializes a duration as a number of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(value.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}
