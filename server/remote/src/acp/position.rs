//! The ids of server-sent events.

use std::fmt;
use std::str::FromStr;

/// A place in a stream: after an event of the session, and after some messages that followed it.
///
/// A message that is an event has its number as id; the first request or answer after event 57
/// has the id `57.1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) event: u64,
    pub(super) part: u64,
}

impl Position {
    pub(super) fn of_event(event: u64) -> Self {
        Self { event, part: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.event),
            part => write!(f, "{}.{part}", self.event),
        }
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (event, part) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self {
            event: event.parse()?,
            part: part.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        for text in ["0", "57", "57.1", "0.3"] {
            assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
        }
        for text in ["", "x", "-1", "1.", "1.2.3", " 1"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}
