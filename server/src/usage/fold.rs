//! The fold of a session's events into turns.

use acp_sdk::v1::{Cost, SessionUpdate};
use serde::{Deserialize, Serialize};

use super::{Costs, TurnEnd, TurnUsage};
use crate::event::{Event, EventBody, EventKind, StoredEvent, TurnEvent};

/// Finds the turns of a session in its events, and what each used.
///
/// A cost that an agent reports is the total of the session so far. The cost of a turn is the
/// increase of the total while the turn runs, or until the next one begins, because some agents
/// report it after their answer. A total that is smaller than the one before counts whole: the agent
/// has restarted its counter. A total that is reported before the first turn counts for none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UsageFold {
    /// The number of the last event that was observed.
    last: u64,
    /// Whether earlier events are missing, so that the first total of a currency may contain the
    /// cost of earlier turns.
    is_partial: bool,
    /// The session's total, as it was reported last.
    reported: Costs,
    turn: Option<TurnUsage>,
}

impl UsageFold {
    /// Creates a fold that continues after the event `last`, without the totals that were reported
    /// before.
    pub(crate) fn after(last: u64) -> Self {
        Self {
            last,
            is_partial: true,
            ..Self::default()
        }
    }

    /// Sets the total in a currency as it was reported last; 0 if it never was.
    pub(super) fn set_reported(&mut self, currency: &str, amount: f64) {
        self.reported.set(currency, amount);
    }

    /// Observes the next event. Returns the previous turn, which is complete, when another one
    /// begins.
    pub fn observe(&mut self, event: StoredEvent<'_>) -> Option<TurnUsage> {
        if event.number != self.last + 1 {
            self.is_partial = true;
            self.reported = Costs::default();
        }
        self.last = event.number;
        match event.kind() {
            EventKind::Turn | EventKind::Usage => {}
            EventKind::Child
            | EventKind::UserMessage
            | EventKind::AgentMessage
            | EventKind::ToolCall
            | EventKind::Notice
            | EventKind::Compaction
            | EventKind::Mode
            | EventKind::ConfigOptions
            | EventKind::Update => return None,
        }
        let Event { body, .. } = event.parse();
        match body {
            EventBody::Turn(TurnEvent::TurnStarted {
                turn,
                client,
                model,
                ..
            }) => {
                let started = TurnUsage {
                    client,
                    model,
                    ..TurnUsage::new(turn, event.time)
                };
                self.turn.replace(started)
            }
            EventBody::Turn(TurnEvent::TurnEnded {
                turn,
                stop_reason,
                error,
                usage,
            }) => {
                let is_current = self.turn.as_ref().is_some_and(|now| now.turn == turn);
                // The start of a turn may not be kept any more.
                let begin =
                    |previous: &mut Option<TurnUsage>| previous.replace(TurnUsage::new(turn, None));
                let previous = match is_current {
                    true => None,
                    false => begin(&mut self.turn),
                };
                if let Some(turn) = &mut self.turn {
                    turn.tokens = usage.unwrap_or_default();
                    turn.end = Some(TurnEnd {
                        at: event.time,
                        stop_reason,
                        error,
                    });
                }
                previous
            }
            EventBody::Update(SessionUpdate::UsageUpdate(update)) => {
                if let Some(cost) = &update.cost {
                    self.report(cost);
                }
                None
            }
            _ => None,
        }
    }

    /// Returns the latest turn, which runs or has ended.
    pub fn latest(&self) -> Option<&TurnUsage> {
        self.turn.as_ref()
    }

    fn report(&mut self, cost: &Cost) {
        let (amount, currency) = (cost.amount, cost.currency.as_str());
        if !is_amount(amount) {
            return;
        }
        let spent = match self.reported.get(currency) {
            Some(before) if before <= amount => Some(amount - before),
            Some(_) => Some(amount),
            None => (!self.is_partial).then_some(amount),
        };
        self.reported.set(currency, amount);
        if let (Some(turn), Some(spent)) = (&mut self.turn, spent) {
            turn.costs.add(currency, spent);
        }
    }
}

/// Returns whether a number can be an amount of money.
pub(super) fn is_amount(amount: f64) -> bool {
    amount.is_finite() && amount >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TurnId;

    /// Folds events, one after the other, each a second after the one before.
    fn turns_after(last: u64, fold: &mut UsageFold, texts: &[&str]) -> Vec<TurnUsage> {
        let mut turns = Vec::new();
        for (number, text) in (last + 1..).zip(texts) {
            let event = StoredEvent {
                number,
                time: Some(number * 1_000),
                text,
            };
            turns.extend(fold.observe(event));
        }
        turns.extend(fold.latest().cloned());
        turns
    }

    fn turns(texts: &[&str]) -> Vec<TurnUsage> {
        turns_after(0, &mut UsageFold::default(), texts)
    }

    fn costs(turns: &[TurnUsage]) -> Vec<Vec<(&str, f64)>> {
        turns
            .iter()
            .map(|turn| turn.costs.iter().collect())
            .collect()
    }

    fn total(amount: f64, currency: &str) -> String {
        format!(
            r#"{{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{{"amount":{amount:?},"currency":"{currency}"}}}}"#
        )
    }

    const SAID: &str =
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"t"}}"#;

    fn start(turn: u64) -> String {
        format!(r#"{{"event":"turn_started","turn":{turn}}}"#)
    }

    fn end(turn: u64) -> String {
        format!(r#"{{"event":"turn_ended","turn":{turn},"stopReason":"end_turn"}}"#)
    }

    #[test]
    fn a_turn_has_its_times_its_end_and_its_tokens() {
        let started = r#"{"event":"turn_started","turn":1,"client":"editor 1.2"}"#;
        let ended = r#"{"event":"turn_ended","turn":1,"stopReason":"max_tokens",
            "usage":{"totalTokens":9,"thoughtTokens":4}}"#;
        let failed = r#"{"event":"turn_ended","turn":4,"error":"no model"}"#;
        let all = turns(&[started, SAID, ended, &start(4), failed, &start(6)]);
        let [first, second, third] = &all[..] else {
            panic!("expected three turns, got {all:?}");
        };
        assert_eq!((first.turn, first.started_at), (TurnId(1), Some(1_000)));
        assert_eq!(first.duration(), Some(2_000));
        assert_eq!(first.client.as_deref(), Some("editor 1.2"));
        assert_eq!(second.client, None);
        let tokens = &first.tokens;
        assert_eq!(
            (
                tokens.total_tokens,
                tokens.thought_tokens,
                tokens.input_tokens
            ),
            (Some(9), Some(4), None)
        );
        let reason = first.end.as_ref().unwrap().stop_reason.as_ref().unwrap();
        assert_eq!(reason.as_str(), "max_tokens");
        let end = second.end.as_ref().unwrap();
        assert_eq!(end.error.as_deref(), Some("no model"));
        assert_eq!(third.duration(), None);
        assert!(third.end.is_none(), "it runs");
    }

    #[test]
    fn the_cost_of_a_turn_is_the_increase_of_the_total() {
        let all = turns(&[
            &start(1),
            &total(0.0, "USD"),
            &total(0.1, "USD"),
            &end(1),
            &start(5),
            &total(0.3, "USD"),
            &total(5.0, "EUR"),
            &end(5),
            &start(9),
            &end(9),
        ]);
        assert_eq!(
            costs(&all),
            [vec![("USD", 0.1)], vec![("EUR", 5.0), ("USD", 0.2)], vec![]]
        );
    }

    #[test]
    fn a_smaller_total_is_a_counter_that_was_restarted() {
        let all = turns(&[
            &start(1),
            &total(3.0, "USD"),
            &end(1),
            &start(4),
            &total(1.0, "USD"),
            &total(1.5, "USD"),
            &end(4),
        ]);
        assert_eq!(costs(&all), [vec![("USD", 3.0)], vec![("USD", 1.5)]]);
    }

    #[test]
    fn a_total_after_the_end_belongs_to_the_turn_before() {
        let all = turns(&[
            &total(2.0, "USD"),
            &start(2),
            &end(2),
            &total(2.5, "USD"),
            &start(5),
            &total(2.75, "USD"),
            &end(5),
        ]);
        // What was reported before the first turn is the cost of none.
        assert_eq!(costs(&all), [vec![("USD", 0.5)], vec![("USD", 0.25)]]);
    }

    #[test]
    fn a_total_after_a_gap_is_no_cost_of_its_turn() {
        let mut fold = UsageFold::default();
        let texts = [
            end(7),
            start(11),
            total(9.0, "USD"),
            total(9.5, "USD"),
            end(11),
        ];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = turns_after(9, &mut fold, &texts);
        assert_eq!(costs(&all), [vec![], vec![("USD", 0.5)]]);
        assert_eq!((all[0].turn, all[0].duration()), (TurnId(7), None));
        // A gap in the middle of a log, too.
        let all = turns_after(90, &mut fold, &[&start(91), &total(99.0, "USD"), &end(91)]);
        assert_eq!(costs(&all), [vec![("USD", 0.5)], vec![]]);
    }

    #[test]
    fn a_fold_continues_with_what_was_reported_before() {
        let mut fold = UsageFold::after(20);
        fold.set_reported("USD", 1.0);
        fold.set_reported("EUR", 0.0);
        // The earlier total in pounds is not known.
        let (euros, pounds) = (total(7.0, "EUR"), total(3.0, "GBP"));
        let texts = [start(21), total(1.25, "USD"), euros, pounds];
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = turns_after(20, &mut fold, &texts);
        assert_eq!(costs(&all), [vec![("EUR", 7.0), ("USD", 0.25)]]);
    }

    #[test]
    fn an_amount_that_is_no_cost_is_left_out() {
        let bad = r#"{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":-1,"currency":"USD"}}"#;
        let none = r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#;
        let all = turns(&[&start(1), &total(1.0, "USD"), bad, none, &total(2.0, "USD")]);
        assert_eq!(costs(&all), [vec![("USD", 2.0)]]);
    }
}
