//! What a call came to.

use std::time::Duration;

use acp_sdk::v1::{Cost, Plan, SessionId, StopReason, ToolCall, UsageUpdate};
use serde::{Deserialize, Serialize};

use crate::session::{Outcome, TokenUsage};

/// What an external agent answered, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskResult {
    /// The agent's text.
    pub text: String,
    /// Everything else.
    pub metadata: TaskMetadata,
}

/// What there is to say about a call beside the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The agent's name.
    pub agent: String,
    /// The session of the call.
    pub session_id: SessionId,
    /// Why the turn ended: `cancelled` if the call was cancelled or timed out.
    pub stop_reason: StopReason,
    /// The call timed out, and its turn was cancelled for that reason.
    pub timed_out: bool,
    /// The agent's thoughts.
    pub thoughts: String,
    /// The tool calls in the order in which they began, with all of their updates.
    pub tool_calls: Vec<ToolCall>,
    /// The plan as it was last.
    pub plan: Option<Plan>,
    /// What the session has cost.
    pub cost: Option<Cost>,
    /// Tokens that the turn took, where the agent says so.
    pub tokens: Option<TokenUsage>,
    /// Tokens in use, and the size of the context, as the agent reported them last.
    pub usage: Option<UsageUpdate>,
    /// From the beginning of the call to its end, in seconds.
    #[serde(with = "seconds", rename = "elapsedSeconds")]
    pub elapsed: Duration,
    /// Something is missing, because there was more than is gathered.
    pub truncated: bool,
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
                usage: outcome.usage,
                elapsed,
                truncated: outcome.truncated,
            },
        }
    }
}

impl std::fmt::Display for TaskResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A duration as a number of seconds.
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
