//! The events of one session in memory, packed.
//!
//! An event of a stream is some 170 bytes; in a box of its own it would cost half as much
//! again, and a bound in bytes would mean little. So texts lie one after the other in
//! segments, and the oldest segment is forgotten as a whole.

use std::collections::VecDeque;

use acp_sdk::runtime::RawValue;

use super::{Event, StoreError};

#[derive(Debug)]
pub(super) struct Log {
    segments: VecDeque<Segment>,
    /// The number of the last event, kept or not.
    last: u64,
    bytes: usize,
    /// Texts of this size make a segment full.
    segment_bytes: usize,
}

#[derive(Debug)]
struct Segment {
    /// The number of the first event.
    first: u64,
    text: String,
    /// Where each event ends in the text.
    ends: Vec<usize>,
}

/// Bytes of events handed out at a time.
const PAGE: usize = 256 << 10;

impl Log {
    /// A log that will be held below `max_bytes`.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            segments: VecDeque::new(),
            last: 0,
            bytes: 0,
            // Small beside the bound, for they are forgotten one by one.
            segment_bytes: (max_bytes / 16).min(64 << 10),
        }
    }

    /// The number of the last event, kept or not.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// What the events occupy.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts an event at the end and returns its number.
    pub(super) fn push(&mut self, update: &str) -> u64 {
        self.last += 1;
        let number = self.last;
        match self.segments.back_mut() {
            Some(segment) if segment.text.len() < self.segment_bytes => segment.push(update),
            full => {
                if let Some(full) = full {
                    full.text.shrink_to_fit();
                    full.ends.shrink_to_fit();
                }
                let mut segment = Segment::new(number);
                segment.push(update);
                self.segments.push_back(segment);
            }
        }
        self.bytes += cost(update);
        number
    }

    /// Forgets the oldest events; `false` when there are none.
    pub(super) fn forget(&mut self) -> bool {
        let oldest = self.segments.pop_front();
        if let Some(segment) = &oldest {
            self.bytes -= segment.bytes();
        }
        oldest.is_some()
    }

    /// The first events after `after`, up to a page.
    pub(super) fn after(&self, after: u64) -> Result<Vec<Event>, StoreError> {
        let mut page = Vec::new();
        let mut bytes = 0;
        let segments = self
            .segments
            .iter()
            .skip_while(|segment| segment.last() <= after);
        for (number, text) in segments.flat_map(Segment::events) {
            if number <= after {
                continue;
            }
            let update = RawValue::from_string(text.to_owned());
            let update = update.map_err(|error| format!("event {number} is damaged: {error}"))?;
            page.push(Event::new(number, update.into()));
            bytes += text.len();
            if bytes >= PAGE {
                break;
            }
        }
        Ok(page)
    }
}

impl Segment {
    fn new(first: u64) -> Self {
        Self {
            first,
            text: String::new(),
            ends: Vec::new(),
        }
    }

    fn push(&mut self, update: &str) {
        self.text.push_str(update);
        self.ends.push(self.text.len());
    }

    fn last(&self) -> u64 {
        self.first + (self.ends.len() as u64).saturating_sub(1)
    }

    fn bytes(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<usize>()
    }

    fn events(&self) -> impl Iterator<Item = (u64, &str)> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = begins.zip(self.ends.iter().copied());
        // The ends are those of whole texts, so they always lie between characters.
        let texts = ranges.map(|(begin, end)| self.text.get(begin..end).unwrap_or_default());
        (self.first..).zip(texts)
    }
}

fn cost(update: &str) -> usize {
    update.len() + size_of::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(log: &Log, after: u64) -> Vec<u64> {
        let events = log.after(after).unwrap();
        for event in &events {
            assert_eq!(event.update.get(), format!("\"ü{}\"", event.number));
        }
        events.iter().map(|event| event.number).collect()
    }

    #[test]
    fn events_come_out_as_they_went_in_over_many_segments() {
        let mut log = Log::new(16 * 20);
        for number in 1..=100 {
            assert_eq!(log.push(&format!("\"ü{number}\"")), number);
        }
        assert!(log.segments.len() > 10, "{}", log.segments.len());
        for after in 0..=101 {
            assert!(numbers(&log, after).into_iter().eq(after + 1..=100));
        }
        assert!(numbers(&log, u64::MAX).is_empty());
    }

    #[test]
    fn what_is_forgotten_is_no_longer_counted() {
        let mut log = Log::new(16 * 20);
        for number in 1..=100 {
            log.push(&format!("\"ü{number}\""));
        }
        let all = log.bytes();
        assert!(log.forget());
        let kept = numbers(&log, 0);
        assert!(log.bytes() < all && kept[0] > 1 && kept.ends_with(&[100]));
        while log.forget() {}
        assert_eq!((log.bytes(), log.last()), (0, 100));
        assert_eq!(log.push("\"ü101\""), 101);
        assert_eq!(numbers(&log, 0), [101]);
    }
}
