//! Makes pages of events from rows, for stores that keep a row per commit.

use std::sync::Arc;

use acp_sdk::v1::SessionId;

use super::EventPage;
use crate::event::{Batch, Times};

/// A page that rows are added to, in the order of their numbers. Small rows are joined.
///
/// Errors say what is damaged: a row that is not what was written.
#[derive(Debug)]
pub struct PageBuilder<'a> {
    session: &'a SessionId,
    max_bytes: usize,
    page: EventPage,
    joined: Joined,
    bytes: usize,
    /// The number after which the first row must continue.
    after: u64,
    /// The number that the next row must begin with; none before the first.
    next: Option<u64>,
}

impl<'a> PageBuilder<'a> {
    /// Begins a page of a session with the events `oldest` to `last`, after the number `after`.
    #[must_use]
    pub fn new(
        session: &'a SessionId,
        (oldest, last): (u64, u64),
        after: u64,
        max_bytes: usize,
    ) -> Self {
        Self {
            session,
            max_bytes,
            page: EventPage {
                batches: Vec::new(),
                oldest,
                last,
            },
            joined: Joined::default(),
            bytes: 0,
            after: after.max(oldest.saturating_sub(1)),
            next: None,
        }
    }

    /// Adds a row; `false` if the page is full, and the row is not in it.
    ///
    /// # Errors
    ///
    /// What is damaged, if the row does not follow the one before.
    pub fn push(
        &mut self,
        (first, last): (u64, u64),
        lines: &str,
        time: Option<u64>,
    ) -> Result<bool, String> {
        self.bytes += lines.len();
        if self.bytes > self.max_bytes && self.next.is_some() {
            return Ok(false);
        }
        let follows = match self.next {
            None => first <= self.after + 1,
            Some(next) => first == next,
        };
        if !follows || last < first {
            let what = "it does not follow the one before";
            return Err(damaged(self.session, first, what));
        }
        self.next = Some(last + 1);
        if self.joined.lines.len() + lines.len() > Batch::MAX_BYTES {
            self.page.batches.extend(self.joined.take(self.session)?);
        }
        self.joined.add(first, last, lines, time);
        Ok(true)
    }

    /// Returns the page.
    ///
    /// # Errors
    ///
    /// What is damaged, if a row has not the events that it should.
    pub fn finish(mut self) -> Result<EventPage, String> {
        self.page.batches.extend(self.joined.take(self.session)?);
        if let Some(first) = self.page.batches.first_mut()
            && first.first() < self.page.oldest
        {
            *first = Arc::new(first.since(self.page.oldest));
        }
        Ok(self.page)
    }
}

/// Rows that become one batch.
#[derive(Debug, Default)]
struct Joined {
    first: u64,
    last: u64,
    lines: String,
    times: Times,
}

impl Joined {
    fn add(&mut self, first: u64, last: u64, lines: &str, time: Option<u64>) {
        if self.lines.is_empty() {
            self.first = first;
            self.times = Times::of(time);
        } else {
            self.times.push(first, time);
        }
        self.last = last;
        self.lines.push_str(lines);
    }

    fn take(&mut self, session: &SessionId) -> Result<Option<Arc<Batch>>, String> {
        if self.lines.is_empty() {
            return Ok(None);
        }
        let lines = std::mem::take(&mut self.lines);
        let batch = batch(session, self.first, self.last, lines)?;
        let times = std::mem::take(&mut self.times);
        Ok(Some(Arc::new(batch.with_times(times))))
    }
}

/// Reads the lines of a row, or of several that follow each other.
pub(super) fn batch(
    session: &SessionId,
    first: u64,
    last: u64,
    lines: String,
) -> Result<Batch, String> {
    match Batch::from_lines(first, lines) {
        Some(batch) if batch.last() == last => Ok(batch),
        _ => Err(damaged(
            session,
            first,
            "it has not the events that it should",
        )),
    }
}

fn damaged(session: &SessionId, first: u64, what: &str) -> String {
    format!("batch {first} of session {session}: {what}")
}
