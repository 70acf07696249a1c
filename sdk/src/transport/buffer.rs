//! Bytes that were read and not yet decoded.
//!
//! Memory: grows to the longest incomplete message, at most the largest allowed one and a chunk,
//! and shrinks to a few chunks afterwards.

use std::ops::Range;

use super::oversized::Oversized;

/// Space offered to each read, and the size that the buffer shrinks to.
pub(super) const CHUNK: usize = 64 * 1024;

/// A contiguous queue of bytes.
#[derive(Debug)]
pub(super) struct Buffer {
    /// The longest message to be buffered.
    max: usize,
    /// Its length is the available space; only `start..end` holds data.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            bytes: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    /// Returns the space for the next read. Call [`filled`](Self::filled) with the bytes used.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > 4 * CHUNK {
                self.bytes = Vec::new();
            }
        } else if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let wanted = self.end + CHUNK;
        if self.bytes.len() < wanted {
            // Doubling keeps the copying of a long message linear in its length.
            let doubled = self.bytes.len().saturating_mul(2);
            let size = wanted.max(doubled.min(self.max.saturating_add(CHUNK)));
            self.bytes.reserve_exact(size - self.bytes.len());
            self.bytes.resize(size, 0);
        }
        &mut self.bytes[self.end..]
    }

    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// Returns the buffered bytes.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Consumes the first `bytes`. The range is valid until the next [`room`](Self::room).
    #[inline]
    pub(super) fn consume(&mut self, bytes: usize) -> Range<usize> {
        let begin = self.start;
        self.start = (begin + bytes).min(self.end);
        begin..self.start
    }

    /// Returns whether a consumed range is all white space.
    #[inline]
    pub(super) fn is_blank(&self, range: &Range<usize>) -> bool {
        self.bytes[range.clone()].trim_ascii_start().is_empty()
    }

    /// Returns a consumed range.
    pub(super) fn range(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Returns a consumed range without the white space that JSON allows around a value. CRLF
    /// needs no special case that way.
    #[inline]
    pub(super) fn trimmed(&self, range: Range<usize>) -> &[u8] {
        self.bytes[range].trim_ascii()
    }
}

/// A message of the buffer, or input that is none.
#[derive(Debug)]
pub(super) enum Found {
    /// Its range in the buffer.
    Text(Range<usize>),
    TooLong(Box<Oversized>),
    Bad(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_survives_being_moved_and_grown() {
        let mut buffer = Buffer::new(8);
        let (mut written, mut read) = (0_u32, 0_u32);
        // Three bytes are left over each time, so every read moves them to the front.
        for _ in 0..100_000 {
            let room = buffer.room();
            room[..8]
                .copy_from_slice(&[written.to_be_bytes(), (written + 1).to_be_bytes()].concat());
            written += 2;
            buffer.filled(8);
            while let Some(number) = buffer.held().first_chunk::<4>() {
                assert_eq!(u32::from_be_bytes(*number), read);
                read += 1;
                buffer.consume(4);
                if buffer.held().len() < 7 {
                    break;
                }
            }
        }
        assert!(written - read < 3, "{read} of {written}");
        assert!(buffer.bytes.len() <= 4 * CHUNK);
    }

    #[test]
    fn the_longest_message_takes_no_more_than_itself_and_a_chunk() {
        const MAX: usize = 40 * CHUNK + 1;
        let mut buffer = Buffer::new(MAX);
        while buffer.held().len() < MAX {
            let room = buffer.room().len();
            buffer.filled(room.min(CHUNK).min(MAX - buffer.held().len()));
        }
        assert_eq!(buffer.room().len(), CHUNK);
        assert_eq!(buffer.bytes.capacity(), MAX + CHUNK);
    }
}
