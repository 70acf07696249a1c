//! Line framing, for the connection to an agent that is restarted.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio_util::codec::Decoder;

/// Decodes a stream into lines.
///
/// A line above the limit is cut one byte above it, where `acp-sdk` rejects it as too long. The rest
/// is skipped.
#[derive(Debug)]
pub(super) struct Lines {
    max_bytes: usize,
    /// Number of buffered bytes that are known to contain no line feed.
    seen: usize,
    /// Whether the rest of a line is being skipped.
    skipping: bool,
}

impl Lines {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            seen: 0,
            skipping: false,
        }
    }
}

impl Decoder for Lines {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        loop {
            let end = memchr::memchr(b'\n', &buffer[self.seen..]);
            let Some(end) = end.map(|offset| self.seen + offset) else {
                self.seen = buffer.len();
                if self.skipping {
                    buffer.clear();
                    self.seen = 0;
                } else if buffer.len() > self.max_bytes {
                    let line = buffer.split_to(self.max_bytes + 1).freeze();
                    buffer.clear();
                    (self.seen, self.skipping) = (0, true);
                    return Ok(Some(line));
                }
                return Ok(None);
            };
            let mut line = buffer.split_to(end + 1);
            line.truncate(end.min(self.max_bytes + 1));
            self.seen = 0;
            let skipped = std::mem::take(&mut self.skipping);
            if !skipped && !line.trim_ascii().is_empty() {
                return Ok(Some(line.freeze()));
            }
        }
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        if let Some(line) = self.decode(buffer)? {
            return Ok(Some(line));
        }
        self.seen = 0;
        let rest = buffer.split().freeze();
        Ok((!rest.trim_ascii().is_empty()).then_some(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of an input that arrives in these pieces.
    fn lines(pieces: &[&str]) -> Vec<String> {
        let mut decoder = Lines::new(8);
        let mut buffer = BytesMut::new();
        let mut lines = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece.as_bytes());
            while let Some(line) = decoder.decode(&mut buffer).unwrap() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        while let Some(line) = decoder.decode_eof(&mut buffer).unwrap() {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
        lines
    }

    #[test]
    fn lines_are_found_wherever_the_pieces_end() {
        assert_eq!(
            lines(&["one\ntw", "o\n\n \r\nthr", "ee"]),
            ["one", "two", "three"]
        );
        assert_eq!(lines(&["", "a", "\n", "b\n"]), ["a", "b"]);
        assert_eq!(lines(&["12345678\n"]), ["12345678"]);
    }

    #[test]
    fn a_line_above_the_limit_is_cut_off_and_the_next_ones_come() {
        assert_eq!(lines(&["123456789abc\nnext\n"]), ["123456789", "next"]);
        let pieces = ["1234", "56789", "abc", "def\nne", "xt\n123456789abc"];
        assert_eq!(lines(&pieces), ["123456789", "next", "123456789"]);
    }
}
