//! One message per line: the stdio transport of ACP.
//!
//! A line above the limit is skipped as it arrives and not buffered.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/transports>

use super::buffer::Buffer;
use super::framing::Found;

/// Decodes lines.
#[derive(Debug)]
pub(super) struct LineDecoder {
    /// Number of buffered bytes that are known to contain no line feed.
    seen: usize,
    /// The longest line that is returned.
    max: usize,
    /// Bytes skipped so far of a line above the limit.
    skipping: Option<u64>,
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
        let line = buffer.consume(length + 1);
        if let Some(skipped) = self.skipping.take() {
            return Some(Found::TooLong(skipped + length as u64));
        }
        if length > self.max {
            return Some(Found::TooLong(length as u64));
        }
        Some(Found::Text(line))
    }

    /// Returns what follows the last line feed at the end of the input.
    pub(super) fn rest(&mut self, buffer: &mut Buffer) -> Found {
        self.seen = 0;
        let line = buffer.consume(buffer.held().len());
        match self.skipping.take() {
            Some(skipped) => Found::TooLong(skipped + line.len() as u64),
            None if line.len() > self.max => Found::TooLong(line.len() as u64),
            None => Found::Text(line),
        }
    }

    fn skip_if_too_long(&mut self, buffer: &mut Buffer) {
        let held = buffer.held().len();
        if self.skipping.is_some() || held > self.max {
            *self.skipping.get_or_insert(0) += held as u64;
            buffer.consume(held);
            self.seen = 0;
        }
    }
}
