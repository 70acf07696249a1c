//! One message per line: the stdio transport of ACP.
//!
//! A line above the limit is skipped as it arrives and not buffered, apart from its ends.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/transports>

use std::ops::Range;

use super::buffer::{Buffer, Found};
use super::oversized::Oversized;

/// Decodes lines.
#[derive(Debug)]
pub(super) struct LineDecoder {
    /// Number of buffered bytes that are known to contain no line feed.
    seen: usize,
    /// The longest line that is returned.
    max: usize,
    /// What was skipped so far of a line above the limit.
    skipping: Option<Box<Oversized>>,
}

impl LineDecoder {
    pub(super) fn new(max: usize) -> Self {
        Self {
            seen: 0,
            max,
            skipping: None,
        }
    }

    /// Returns whether the next byte is the first of a line.
    pub(super) fn at_line_start(&self) -> bool {
        self.skipping.is_none()
    }

    /// Returns the next complete line.
    #[inline]
    pub(super) fn next(&mut self, buffer: &mut Buffer) -> Option<Found> {
        let held = buffer.held();
        let Some(offset) = memchr::memchr(b'\n', &held[self.seen..]) else {
            self.seen = held.len();
            self.skip_if_too_long(buffer);
            return None;
        };
        let length = self.seen + offset;
        self.seen = 0;
        if self.skipping.is_some() || length > self.max {
            let oversized = self.oversized(&buffer.held()[..length]);
            buffer.consume(length + 1);
            return Some(Found::TooLong(oversized));
        }
        Some(Found::Text(buffer.consume(length + 1)))
    }

    /// Returns all complete lines with their line feeds, if each is a message as it is: it begins an
    /// object, has no carriage return, and is not above the limit.
    pub(super) fn block(&mut self, buffer: &mut Buffer) -> Option<Range<usize>> {
        let held = buffer.held();
        let last = memchr::memrchr(b'\n', &held[self.seen..])? + self.seen;
        let lines = &held[..last];
        let mut starts = memchr::memchr_iter(b'\n', lines).map(|end| end + 1);
        let are_messages = self.skipping.is_none()
            && last <= self.max
            && held[0] == b'{'
            && starts.all(|start| held[start] == b'{')
            && memchr::memchr(b'\r', lines).is_none();
        if !are_messages {
            return None;
        }
        self.seen = held.len() - last - 1;
        Some(buffer.consume(last + 1))
    }

    /// Returns a line above the limit, whose last bytes are `rest`.
    fn oversized(&mut self, rest: &[u8]) -> Box<Oversized> {
        let mut oversized = self.skipping.take().unwrap_or_default();
        oversized.add(rest);
        oversized
    }

    /// Returns what follows the last line feed at the end of the input.
    pub(super) fn rest(&mut self, buffer: &mut Buffer) -> Found {
        self.seen = 0;
        let length = buffer.held().len();
        let oversized =
            (self.skipping.is_some() || length > self.max).then(|| self.oversized(buffer.held()));
        let line = buffer.consume(length);
        oversized.map_or(Found::Text(line), Found::TooLong)
    }

    fn skip_if_too_long(&mut self, buffer: &mut Buffer) {
        let held = buffer.held();
        if self.skipping.is_some() || held.len() > self.max {
            self.skipping.get_or_insert_default().add(held);
            buffer.consume(held.len());
            self.seen = 0;
        }
    }
}
