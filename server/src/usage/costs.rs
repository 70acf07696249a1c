//! Costs in several currencies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most currencies of one sum. Those beyond are left out: an agent invents them.
pub(super) const MOST_CURRENCIES: usize = 32;

/// The most bytes of a currency's name. A longer one is left out.
const LONGEST_NAME: usize = 64;

/// Amounts by currency: an ISO 4217 code, or another unit that the agent charges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Costs(BTreeMap<String, f64>);

impl Costs {
    /// Returns the amount in a currency, if it is known.
    pub fn get(&self, currency: &str) -> Option<f64> {
        self.0.get(currency).copied()
    }

    /// Replaces the amount in a currency.
    pub fn set(&mut self, currency: &str, amount: f64) {
        if let Some(slot) = self.slot(currency) {
            *slot = amount;
        }
    }

    /// Adds to the amount in a currency.
    pub fn add(&mut self, currency: &str, amount: f64) {
        if let Some(slot) = self.slot(currency) {
            *slot = rounded(*slot + amount);
        }
    }

    /// Adds other costs.
    pub fn add_all(&mut self, other: &Self) {
        for (currency, amount) in other.iter() {
            self.add(currency, amount);
        }
    }

    /// Returns the amounts in the order of the currencies' names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let amounts = self.0.iter();
        amounts.map(|(currency, amount)| (currency.as_str(), *amount))
    }

    /// Returns the amounts as text: `1 EUR, 0.25 USD`; `None` without any.
    pub fn text(&self) -> Option<String> {
        let amounts = self.iter();
        let amounts = amounts.map(|(currency, amount)| format!("{amount} {currency}"));
        let amounts: Vec<_> = amounts.collect();
        (!amounts.is_empty()).then(|| amounts.join(", "))
    }

    fn slot(&mut self, currency: &str) -> Option<&mut f64> {
        if !self.0.contains_key(currency) {
            if self.0.len() >= MOST_CURRENCIES || currency.len() > LONGEST_NAME {
                return None;
            }
            self.0.insert(currency.to_owned(), 0.0);
        }
        self.0.get_mut(currency)
    }
}

/// Returns an amount without the error of binary fractions: 0.3 instead of 0.30000000000000004.
pub(super) fn rounded(amount: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    let scaled = (amount * DIGITS).round();
    // An amount this large has no digits to round.
    if scaled.is_finite() {
        scaled / DIGITS
    } else {
        amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_added_by_currency() {
        let mut costs = Costs::default();
        costs.add("USD", 0.1);
        costs.add("EUR", 7.0);
        let other = costs.clone();
        costs.add("USD", 0.2);
        costs.add_all(&other);
        assert_eq!(
            costs.iter().collect::<Vec<_>>(),
            [("EUR", 14.0), ("USD", 0.4)]
        );
        let json = serde_json::to_string(&costs).unwrap();
        assert_eq!(json, r#"{"EUR":14.0,"USD":0.4}"#);
        assert_eq!(costs.get("GBP"), None);
    }

    #[test]
    fn currencies_are_bounded_in_number_and_length() {
        let mut costs = Costs::default();
        costs.add(&"x".repeat(LONGEST_NAME + 1), 1.0);
        assert_eq!(costs, Costs::default());
        for number in 0..100 {
            costs.add(&format!("C{number}"), 1.0);
        }
        costs.add("C0", 1.0);
        assert_eq!(costs.iter().count(), MOST_CURRENCIES);
        assert_eq!((costs.get("C0"), costs.get("C99")), (Some(2.0), None));
    }

    #[test]
    fn an_amount_is_rounded_unless_it_is_too_large() {
        assert_eq!(rounded(0.1 + 0.2), 0.3);
        assert_eq!(rounded(f64::MAX), f64::MAX);
        assert_eq!(rounded(123_456_789.01), 123_456_789.01);
    }
}
