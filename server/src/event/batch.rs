//! Consecutive events of a session as one piece of memory: the unit in which they are committed,
//! kept and read.

use std::fmt;

use super::times::Times;
use super::{Event, StoredEvent};

/// What the events of a turn without updates need: fewer would be allocated in many steps.
const FIRST_BYTES: usize = 480;
const FIRST_EVENTS: usize = 4;

/// Consecutive events of one session, as JSON texts.
///
/// Events of a stream have about 170 bytes each. Kept together they cost one allocation, one
/// commit and one row of a store, not one of each per event.
#[derive(Clone, PartialEq, Eq)]
pub struct Batch {
    first: u64,
    /// A JSON text per line, in UTF-8.
    lines: Vec<u8>,
    /// The end of each line, with its line feed.
    ends: Vec<u32>,
    times: Times,
}

impl Batch {
    /// The most bytes of a batch, unless its first event alone has more.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Creates a batch without events whose first event will have the number `first`.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self {
            first,
            lines: Vec::new(),
            ends: Vec::new(),
            times: Times::default(),
        }
    }

    /// Creates a batch from the form that [`lines`](Self::lines) returns; `None` if the text does
    /// not end with a line feed.
    #[must_use]
    pub fn from_lines(first: u64, lines: String) -> Option<Self> {
        if !lines.is_empty() && !lines.ends_with('\n') {
            return None;
        }
        let ends = memchr::memchr_iter(b'\n', lines.as_bytes());
        let ends = ends
            .map(|at| u32::try_from(at + 1))
            .collect::<Result<_, _>>();
        Some(Self {
            first,
            ends: ends.ok()?,
            lines: lines.into_bytes(),
            times: Times::default(),
        })
    }

    /// Sets the time of all events, in milliseconds since 1970-01-01 00:00 UTC (`None`: unknown).
    #[must_use]
    pub fn with_time(mut self, time: Option<u64>) -> Self {
        self.times = Times::of(time);
        self
    }

    /// Sets the times of events that were committed one after the other.
    pub(crate) fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// Returns when an event was committed, in milliseconds since 1970-01-01 00:00 UTC; `None` if
    /// that is unknown.
    #[must_use]
    pub fn time(&self, number: u64) -> Option<u64> {
        self.times.get(number)
    }

    /// Reads an event, if it is in this batch.
    #[must_use]
    pub fn event(&self, number: u64) -> Option<Event> {
        Some(self.stored(number)?.parse())
    }

    /// Returns an event with its time, if it is in this batch.
    pub fn stored(&self, number: u64) -> Option<StoredEvent<'_>> {
        Some(StoredEvent {
            number,
            time: self.time(number),
            text: self.get(number)?,
        })
    }

    /// Appends an event, a JSON text, and returns its number.
    pub fn push(&mut self, text: &str) -> u64 {
        let begin = self.lines.len();
        self.lines.extend_from_slice(text.as_bytes());
        self.close_line(begin)
    }

    /// Appends an event that `write` appends to the bytes, as JSON, and returns its number. If it
    /// fails, nothing is appended.
    pub(crate) fn write<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let begin = self.lines.len();
        if self.lines.capacity() == 0 {
            self.lines.reserve(FIRST_BYTES);
            self.ends.reserve(FIRST_EVENTS);
        }
        if let Err(error) = write(&mut self.lines) {
            self.lines.truncate(begin);
            return Err(error);
        }
        Ok(self.close_line(begin))
    }

    fn close_line(&mut self, begin: usize) -> u64 {
        // Raw JSON of a peer may be spread over lines. Between tokens a blank means the same, and
        // strings contain no bare line feeds.
        let mut from = begin;
        while let Some(at) = memchr::memchr(b'\n', &self.lines[from..]) {
            self.lines[from + at] = b' ';
            from += at + 1;
        }
        self.lines.push(b'\n');
        // Batches end long before; a single event is bounded by the size of a message.
        let end = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        self.ends.push(end);
        self.last()
    }

    /// Removes the events after the number `last`.
    pub(crate) fn truncate(&mut self, last: u64) {
        let count = last.saturating_add(1).saturating_sub(self.first);
        self.ends
            .truncate(usize::try_from(count).unwrap_or(usize::MAX));
        let bytes = self.ends.last().map_or(0, |end| *end as usize);
        self.lines.truncate(bytes);
    }

    /// Returns the number of the first event.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the last event; `first - 1` if there is none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.first + self.ends.len() as u64 - 1
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of the events.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// Returns the events as text, one JSON text per line, for a store.
    #[must_use]
    pub fn lines(&self) -> &str {
        // What is pushed is UTF-8.
        std::str::from_utf8(&self.lines).unwrap_or_default()
    }

    /// Returns the JSON text of an event, if it is in this batch.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&str> {
        std::str::from_utf8(self.raw(number)?).ok()
    }

    /// Returns the JSON text of an event as bytes.
    pub(crate) fn raw(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let end = *self.ends.get(at)? as usize;
        let begin = match at.checked_sub(1) {
            Some(before) => self.ends[before] as usize,
            None => 0,
        };
        self.lines.get(begin..end - 1)
    }

    /// Returns the events after the number `after`, with their numbers.
    pub fn after(&self, after: u64) -> impl Iterator<Item = (u64, &str)> {
        let from = self.first.max(after.saturating_add(1));
        (from..=self.last()).map_while(|number| Some((number, self.get(number)?)))
    }

    /// Returns the events from the number `first` on.
    #[must_use]
    pub fn since(&self, first: u64) -> Self {
        let cut = usize::try_from(first.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let cut = cut.min(self.ends.len());
        let (before, ends) = self.ends.split_at(cut);
        let begin = before.last().copied().unwrap_or(0);
        Self {
            first: self.first + cut as u64,
            lines: self.lines[begin as usize..].to_owned(),
            ends: ends.iter().map(|end| end - begin).collect(),
            times: self.times.clone(),
        }
    }

    /// Returns the events up to the number `last`, that included.
    #[must_use]
    pub fn up_to(&self, last: u64) -> Self {
        let count = last.saturating_add(1).saturating_sub(self.first);
        let count = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.ends.len());
        let ends = self.ends[..count].to_vec();
        let bytes = ends.last().map_or(0, |end| *end as usize);
        Self {
            first: self.first,
            lines: self.lines[..bytes].to_owned(),
            ends,
            times: self.times.clone(),
        }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Batch({}..={}, {} bytes)",
            self.first,
            self.last(),
            self.bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_time_of_their_batch() {
        let batch = batch(7, &["{}", "{}"]);
        assert_eq!(batch.time(7), None);
        let timed = batch.with_time(Some(1_500));
        assert_eq!(
            (timed.time(7), timed.up_to(7).time(7)),
            (Some(1_500), Some(1_500))
        );
        let event = timed.event(8).unwrap();
        let since = event.time.unwrap().duration_since(std::time::UNIX_EPOCH);
        assert_eq!(since.unwrap().as_millis(), 1_500);
        assert_eq!(timed.event(9), None);
    }

    fn batch(first: u64, texts: &[&str]) -> Batch {
        let mut batch = Batch::new(first);
        for text in texts {
            assert_eq!(batch.push(text), batch.last());
        }
        batch
    }

    #[test]
    fn events_come_out_as_they_went_in() {
        let batch = batch(7, &["\"ü\"", "{}", "3"]);
        assert_eq!((batch.first(), batch.last(), batch.len()), (7, 9, 3));
        let all: Vec<_> = batch.after(0).collect();
        assert_eq!(all, [(7, "\"ü\""), (8, "{}"), (9, "3")]);
        assert_eq!(batch.after(8).collect::<Vec<_>>(), [(9, "3")]);
        assert_eq!(batch.after(9).count() + batch.after(u64::MAX).count(), 0);
        assert_eq!((batch.get(6), batch.get(10)), (None, None));
        let again = Batch::from_lines(7, batch.lines().to_owned());
        assert_eq!(again, Some(batch));
    }

    #[test]
    fn a_text_without_its_last_line_feed_is_refused() {
        assert_eq!(Batch::from_lines(1, "{}\n{}".to_owned()), None);
        assert!(Batch::from_lines(1, String::new()).is_some_and(|batch| batch.is_empty()));
    }

    #[test]
    fn an_event_that_cannot_be_written_leaves_nothing() {
        let mut batch = batch(1, &["1"]);
        let before = batch.clone();
        let failed = batch.write(|lines| {
            lines.extend_from_slice(b"half");
            Err("no")
        });
        assert_eq!((failed, batch), (Err("no"), before));
    }

    #[test]
    fn an_event_is_one_line() {
        let mut batch = Batch::new(1);
        batch.push("{\n}\n");
        batch.push("2");
        assert_eq!(batch.lines(), "{ } \n2\n");
    }

    #[test]
    fn a_batch_can_be_cut() {
        let whole = batch(4, &["4", "5", "6"]);
        assert_eq!(whole.up_to(5), batch(4, &["4", "5"]));
        assert_eq!(whole.up_to(3), Batch::new(4));
        assert_eq!(whole.up_to(u64::MAX), whole);
        assert_eq!(whole.since(5), batch(5, &["5", "6"]));
        assert_eq!(whole.since(0), whole);
        assert_eq!(whole.since(u64::MAX), Batch::new(7));
    }
}
