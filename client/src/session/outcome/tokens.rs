//! The tokens and the cost of a turn.

use acp_sdk::v1::Cost;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tokens used by a turn.
///
/// A proposal for the protocol that several agents implement: the member `usage` of the response to
/// `session/prompt`; in version 2, of the update that reports the idle session. Without it, input and
/// output are those of `_meta.quota.token_count`, which Gemini CLI sends. Some agents report the
/// last request to the model only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// The number of tokens that the model read.
    #[serde(default)]
    pub input_tokens: u64,
    /// The number of tokens that the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// The total number of tokens.
    #[serde(default)]
    pub total_tokens: u64,
    /// The number of read tokens that came from the provider's cache.
    #[serde(default)]
    pub cached_read_tokens: Option<u64>,
    /// The number of read tokens that were stored in the provider's cache.
    #[serde(default)]
    pub cached_write_tokens: Option<u64>,
    /// The number of written tokens of thoughts.
    #[serde(default)]
    pub thought_tokens: Option<u64>,
}

impl TokenUsage {
    /// Reads the members of the response to a prompt.
    pub(crate) fn of(usage: Value, meta: &Value) -> Option<Self> {
        #[derive(Deserialize)]
        struct Count {
            input_tokens: u64,
            output_tokens: u64,
        }
        if let Ok(Some(usage)) = serde_json::from_value(usage) {
            return Some(usage);
        }
        let count = Count::deserialize(&meta["quota"]["token_count"]).ok()?;
        Some(Self {
            input_tokens: count.input_tokens,
            output_tokens: count.output_tokens,
            total_tokens: count.input_tokens.saturating_add(count.output_tokens),
            cached_read_tokens: None,
            cached_write_tokens: None,
            thought_tokens: None,
        })
    }
}

/// The cost of a session before a turn. Agents report the sum, from which that of the turn follows.
#[derive(Debug, Clone, Default)]
pub(crate) enum CostBefore {
    /// The session is new.
    #[default]
    Nothing,
    Known(Cost),
    /// Something was done whose cost was not reported.
    Unknown,
}

impl CostBefore {
    /// Returns the cost of what followed; `None` if it is unknown or the currency has changed.
    pub(super) fn until(&self, now: Option<&Cost>) -> Option<Cost> {
        let now = now?;
        let before = match self {
            Self::Nothing => 0.0,
            Self::Known(before) if before.currency == now.currency => before.amount,
            Self::Known(_) | Self::Unknown => return None,
        };
        let amount = now.amount - before;
        (amount >= 0.0).then(|| Cost::new(amount, now.currency.clone()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_those_of_the_response_in_any_form() {
        let of = |usage: Value, meta: Value| {
            let tokens = TokenUsage::of(usage, &meta)?;
            Some((
                tokens.input_tokens,
                tokens.output_tokens,
                tokens.total_tokens,
            ))
        };
        let usage = json!({"inputTokens": 7, "outputTokens": 2, "totalTokens": 9});
        let quota = json!({"quota": {"token_count": {"input_tokens": 3, "output_tokens": 1}}});
        assert_eq!(of(usage.clone(), Value::Null), Some((7, 2, 9)));
        assert_eq!(of(usage, quota.clone()), Some((7, 2, 9)));
        assert_eq!(of(Value::Null, quota.clone()), Some((3, 1, 4)));
        assert_eq!(of(json!("none"), quota), Some((3, 1, 4)));
        assert_eq!(of(Value::Null, json!({"quota": {"token_count": {}}})), None);
        assert_eq!(of(json!({"inputTokens": "7"}), json!([])), None);
    }

    #[test]
    fn the_cost_of_a_turn_is_what_the_session_has_cost_more() {
        let euros = |amount| Cost::new(amount, "EUR");
        let known = CostBefore::Known(euros(1.5));
        assert_eq!(
            CostBefore::Nothing.until(Some(&euros(0.5))),
            Some(euros(0.5))
        );
        assert_eq!(known.until(Some(&euros(1.75))), Some(euros(0.25)));
        assert_eq!(known.until(Some(&euros(1.0))), None, "it was counted anew");
        assert_eq!(known.until(Some(&Cost::new(2.0, "USD"))), None);
        assert_eq!(known.until(None), None);
        assert_eq!(CostBefore::Unknown.until(Some(&euros(1.0))), None);
    }
}
