//! The violations of one row: all of them are counted, and different ones are named.

use std::fmt::Write as _;

use crate::harness::{Recording, Stop};
use crate::passive::Violation;
use crate::wire::shorten;

/// How many different violations are named, each with so many characters after the first.
const NAMED: usize = 5;
const LENGTH: usize = 120;

/// How many different ones are counted.
const COUNTED: usize = 100;

/// What breaks a row.
#[derive(Debug, Default)]
pub(super) struct Violations {
    /// The first, with its message.
    first: Option<Stop>,
    /// Different reasons, and how often each was seen.
    reasons: Vec<(String, usize)>,
    all: usize,
}

impl Violations {
    /// Takes one at this message, or at the one that it names.
    pub(super) fn add(&mut self, recording: &Recording, index: usize, violation: Violation) {
        self.all += 1;
        if self.first.is_none() {
            let place = violation
                .place
                .and_then(|place| usize::try_from(place).ok());
            let (index, pointer) = (place.unwrap_or(index), &violation.pointer);
            self.first = Some(Stop::at_place(recording, index, pointer, &violation.reason));
        }
        let reason = violation.reason;
        match self.reasons.iter().position(|(known, _)| *known == reason) {
            Some(known) => {
                if let Some((_, times)) = self.reasons.get_mut(known) {
                    *times += 1;
                }
            }
            None if self.reasons.len() < COUNTED => self.reasons.push((reason, 1)),
            None => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// The failure of the row, if there was one.
    pub(super) fn failure(self) -> Option<Stop> {
        let Stop::Fail(mut failure) = self.first? else {
            return None;
        };
        if self.all > 1 {
            // Writing to a string does not fail.
            let _ = write!(failure.reason, "; {} violations in all", self.all);
        }
        for (number, (reason, times)) in self.reasons.iter().take(NAMED).skip(1).enumerate() {
            let before = if number == 0 { ", also:" } else { ";" };
            let _ = write!(failure.reason, "{before} {}", shorten(reason, LENGTH));
            if *times > 1 {
                let _ = write!(failure.reason, " ({times} times)");
            }
        }
        match self.reasons.len().saturating_sub(NAMED) {
            0 => {}
            more if self.reasons.len() < COUNTED => {
                let _ = write!(failure.reason, "; and {more} others");
            }
            more => {
                let _ = write!(failure.reason, "; and {more} or more others");
            }
        }
        Some(Stop::Fail(failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(reasons: &[&str]) -> Option<String> {
        let mut violations = Violations::default();
        for reason in reasons {
            violations.add(&Recording::default(), 0, Violation::new(*reason));
        }
        match violations.failure()? {
            Stop::Fail(failure) => Some(failure.reason),
            _ => None,
        }
    }

    #[test]
    fn all_are_counted_and_different_ones_named() {
        assert_eq!(reason(&[]), None);
        assert_eq!(reason(&["a"]).as_deref(), Some("a"));
        let text = "a; 2 violations in all";
        assert_eq!(reason(&["a", "a"]).as_deref(), Some(text));
        let text = "a; 5 violations in all, also: b (2 times); c";
        assert_eq!(reason(&["a", "b", "a", "b", "c"]).as_deref(), Some(text));
    }

    #[test]
    fn what_is_named_is_bounded() {
        let all: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        let reason = reason(&all).unwrap();
        assert!(reason.starts_with("0; 1000 violations in all, also: 1; "));
        assert!(reason.ends_with("; 4; and 95 or more others"), "{reason}");
        let long = ["a", "b", "c", "d", "e", "f"].map(|letter| letter.repeat(1000));
        let long = long.each_ref().map(String::as_str);
        let text = self::reason(&long[1..]).unwrap();
        assert!(text.len() < 1000 + 5 * (LENGTH + 20), "{text}");
        assert!(self::reason(&long).unwrap().ends_with("; and 1 others"));
    }
}
