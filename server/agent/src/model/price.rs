//! What tokens cost.

use std::collections::BTreeMap;

use acp_sdk::v1::Cost;
use serde::{Deserialize, Serialize};

use super::Tokens;

/// The price of a model, in one currency per million tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of tokens of requests.
    pub input: f64,
    /// Of tokens of answers.
    pub output: f64,
    /// Of tokens of requests that the provider had in its cache (default: as `input`).
    #[serde(default)]
    pub cached: Option<f64>,
    /// The currency, by ISO 4217 (default: USD).
    #[serde(default = "usd")]
    pub currency: String,
}

fn usd() -> String {
    "USD".to_owned()
}

/// Prices by the [names](super::Model::name) of models. Those of providers change, so the table is the user's:
/// it has none at first, and a model without a price has no cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Returns what tokens of a model cost; `None` if its price is not known.
    #[must_use]
    pub fn cost(&self, model: &str, tokens: Tokens) -> Option<Cost> {
        let price = self.0.get(model)?;
        let cached = tokens.cached.min(tokens.input);
        let read = price.cached.unwrap_or(price.input);
        let amount = count(tokens.input - cached) * price.input
            + count(cached) * read
            + count(tokens.output) * price.output;
        Some(Cost::new(amount / 1e6, price.currency.as_str()))
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a request has fewer than 2^53 tokens"
)]
fn count(tokens: u64) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_counts_cached_tokens_once() {
        let table = r#"{"m": {"input": 2.0, "output": 10.0, "cached": 0.5}}"#;
        let prices: Prices = serde_json::from_str(table).expect("prices");
        let tokens = Tokens {
            input: 1_000_000,
            cached: 400_000,
            output: 100_000,
            thought: 50_000,
        };
        let cost = prices.cost("m", tokens).expect("a price");
        assert!((cost.amount - (1.2 + 0.2 + 1.0)).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.currency, "USD");
        assert_eq!(prices.cost("other", tokens), None);
    }
}
