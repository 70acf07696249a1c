//! Which events belong to which prompt, for the latest turns of a session.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::event::TurnId;

/// The turns that are remembered. Clients that are further behind get no prompt with their updates.
const LATEST: usize = 64;

/// The events of a turn, and its prompt.
#[derive(Debug)]
pub(crate) struct TurnEvents {
    /// Open at its end while the turn runs.
    numbers: RangeInclusive<u64>,
    /// The id of its prompt, as JSON: that of its client, or else one of the turn.
    prompt: String,
}

impl TurnEvents {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    pub(crate) fn prompt(&self) -> &str {
        &self.prompt
    }
}

#[derive(Debug)]
struct Remembered {
    turn: TurnId,
    /// Its last event; the highest number while the turn runs.
    last: u64,
    /// The name of its prompt. The id that clients are sent is made from it with an update, for a turn
    /// without updates needs none.
    name: Option<Arc<str>>,
}

/// The latest turns, in order.
#[derive(Debug, Default)]
pub(super) struct Turns(VecDeque<Remembered>);

impl Turns {
    pub(super) fn started(&mut self, turn: TurnId, name: Option<Arc<str>>) {
        if self.0.len() >= LATEST {
            self.0.pop_front();
        }
        let last = u64::MAX;
        self.0.push_back(Remembered { turn, last, name });
    }

    /// The latest turn has no event after this one.
    pub(super) fn ended(&mut self, number: u64) {
        if let Some(latest) = self.0.back_mut() {
            latest.last = latest.last.min(number);
        }
    }

    /// Events after `last` could not be committed: neither the starts nor the ends among them.
    pub(super) fn rolled_back(&mut self, last: u64) {
        while self.0.back().is_some_and(|latest| latest.turn.0 > last) {
            self.0.pop_back();
        }
        if let Some(latest) = self.0.back_mut()
            && latest.last > last
        {
            latest.last = u64::MAX;
        }
    }

    /// Returns the latest turn if it has no end.
    pub(super) fn without_end(&self) -> Option<TurnId> {
        let latest = self.0.back()?;
        (latest.last == u64::MAX).then_some(latest.turn)
    }

    pub(super) fn at(&self, number: u64) -> Option<TurnEvents> {
        let mut latest_first = self.0.iter().rev();
        let found = latest_first.find(|turn| (turn.turn.0..=turn.last).contains(&number))?;
        Some(TurnEvents {
            numbers: found.turn.0..=found.last,
            prompt: match &found.name {
                Some(name) => serde_json::Value::from(&**name).to_string(),
                None => format!("\"turn-{}\"", found.turn.0),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(turns: &Turns, number: u64) -> Option<String> {
        turns.at(number).map(|turn| turn.prompt)
    }

    #[test]
    fn events_belong_to_the_turn_around_them() {
        let mut turns = Turns::default();
        turns.started(TurnId(3), Some("a \"b\"".into()));
        assert_eq!(prompt(&turns, 2), None);
        assert_eq!(prompt(&turns, 900), Some(r#""a \"b\"""#.to_owned()));
        turns.ended(7);
        assert_eq!(prompt(&turns, 7), Some(r#""a \"b\"""#.to_owned()));
        assert_eq!(prompt(&turns, 8), None);
        turns.started(TurnId(10), None);
        assert_eq!(prompt(&turns, 9), None);
        assert_eq!(prompt(&turns, 10), Some(r#""turn-10""#.to_owned()));
        for turn in 0..LATEST as u64 {
            turns.started(TurnId(20 + turn), None);
        }
        assert_eq!(prompt(&turns, 10), None, "only the latest are kept");
    }

    #[test]
    fn what_could_not_be_committed_is_forgotten() {
        let mut turns = Turns::default();
        turns.started(TurnId(3), Some("kept".into()));
        turns.ended(9);
        turns.started(TurnId(12), Some("lost".into()));
        turns.rolled_back(11);
        assert_eq!(prompt(&turns, 9), Some(r#""kept""#.to_owned()));
        assert_eq!(prompt(&turns, 12), None);
        assert_eq!(turns.without_end(), None);
        turns.rolled_back(8);
        assert_eq!(turns.without_end(), Some(TurnId(3)), "its end is lost");
        turns.ended(14);
        turns.started(TurnId(15), Some("next".into()));
        assert_eq!(prompt(&turns, 14), Some(r#""kept""#.to_owned()));
        assert_eq!(turns.without_end(), Some(TurnId(15)), "it runs");
    }
}
