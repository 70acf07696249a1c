//! Splits incoming bytes into lines.
//!
//! Memory: the buffer grows to the longest line accepted and shrinks again; a
//! line above the limit is skipped as it arrives, without being kept.

/// One line without its ending, or what stood in the place of one.
#[derive(Debug, PartialEq)]
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    /// A line above the limit was skipped; its length in bytes.
    TooLong(u64),
}

/// Bytes read and not yet handed out.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    /// Its length is the room there is; only `start..end` holds data.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No line ending stands before this position.
    scanned: usize,
    /// The longest line handed out.
    max: usize,
    /// Length so far of a line that is being skipped.
    skipping: Option<u64>,
    /// A byte order mark may only stand at the very beginning.
    at_beginning: bool,
}

/// Room offered to each read, and the size that the buffer falls back to.
const CHUNK: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl LineBuffer {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            scanned: 0,
            max,
            skipping: None,
            at_beginning: true,
        }
    }

    /// Room for the next read. Call [`filled`](Self::filled) with the number of bytes read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end, self.scanned) = (0, 0, 0);
            if self.buffer.len() > 4 * CHUNK {
                self.buffer = Vec::new();
            }
        } else if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        let wanted = self.end + CHUNK;
        if self.buffer.len() < wanted {
            // Doubling keeps the copying of a long line linear in its length.
            let doubled = wanted.max(self.buffer.len().saturating_mul(2));
            self.buffer.resize(doubled, 0);
        }
        &mut self.buffer[self.end..]
    }

    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
        if self.at_beginning && self.end >= BYTE_ORDER_MARK.len() {
            self.at_beginning = false;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.start = BYTE_ORDER_MARK.len();
                self.scanned = self.start;
            }
        }
    }

    /// The next complete line that is not blank.
    pub(crate) fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let unseen = &self.buffer[self.scanned..self.end];
            let Some(offset) = memchr::memchr(b'\n', unseen) else {
                self.scanned = self.end;
                self.skip_if_too_long();
                return None;
            };
            let begin = self.start;
            let newline = self.scanned + offset;
            self.start = newline + 1;
            self.scanned = self.start;
            if let Some(skipped) = self.skipping.take() {
                return Some(Line::TooLong(skipped + (newline - begin) as u64));
            }
            if newline - begin > self.max {
                return Some(Line::TooLong((newline - begin) as u64));
            }
            let line = trim(&self.buffer[begin..newline]);
            if !line.is_empty() {
                // The range is taken again: the borrow checker ends the first borrow at the loop.
                let end = begin + trimmed_end(&self.buffer[begin..newline]);
                let begin = end - line.len();
                return Some(Line::Text(&self.buffer[begin..end]));
            }
        }
    }

    /// What stands after the last line ending, once nothing more will come.
    pub(crate) fn rest(&mut self) -> Option<Line<'_>> {
        let begin = std::mem::replace(&mut self.start, self.end);
        self.scanned = self.end;
        if let Some(skipped) = self.skipping.take() {
            return Some(Line::TooLong(skipped + (self.end - begin) as u64));
        }
        let line = trim(&self.buffer[begin..self.end]);
        (!line.is_empty()).then_some(Line::Text(line))
    }

    fn skip_if_too_long(&mut self) {
        let held = self.end - self.start;
        if self.skipping.is_some() || held > self.max {
            *self.skipping.get_or_insert(0) += held as u64;
            self.start = self.end;
        }
    }
}

/// Without the white space that JSON allows around a value, so CRLF needs no case of its own.
fn trim(line: &[u8]) -> &[u8] {
    line[..trimmed_end(line)].trim_ascii_start()
}

fn trimmed_end(line: &[u8]) -> usize {
    line.trim_ascii_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that comes out when `input` arrives in pieces of `piece` bytes.
    fn split(input: &[u8], piece: usize, max: usize) -> Vec<Result<String, u64>> {
        let mut lines = LineBuffer::new(max);
        let mut out = Vec::new();
        for chunk in input.chunks(piece) {
            let room = lines.room();
            room[..chunk.len()].copy_from_slice(chunk);
            lines.filled(chunk.len());
            while let Some(line) = lines.next_line() {
                out.push(own(&line));
            }
        }
        out.extend(lines.rest().map(|line| own(&line)));
        out
    }

    fn own(line: &Line<'_>) -> Result<String, u64> {
        match line {
            Line::Text(text) => Ok(String::from_utf8_lossy(text).into_owned()),
            Line::TooLong(length) => Err(*length),
        }
    }

    #[test]
    fn every_chunking_yields_the_same_lines() {
        let input = "\u{feff}{\"a\":1}\r\n\n  \n{\"b\":\"\u{2028}ü\"}\n last ".as_bytes();
        let expected = vec![
            Ok("{\"a\":1}".to_owned()),
            Ok("{\"b\":\"\u{2028}ü\"}".to_owned()),
            Ok("last".to_owned()),
        ];
        for piece in 1..=input.len() {
            assert_eq!(split(input, piece, 1000), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn lines_above_the_limit_are_skipped_with_their_length() {
        let input = b"12345\n123456\n1\n1234567";
        for piece in 1..=input.len() {
            assert_eq!(
                split(input, piece, 5),
                [Ok("12345".to_owned()), Err(6), Ok("1".to_owned()), Err(7)],
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_skipped_line_is_not_kept() {
        let mut lines = LineBuffer::new(1024);
        for _ in 0..1000 {
            let room = lines.room();
            room.fill(b'x');
            let bytes = room.len();
            lines.filled(bytes);
            assert_eq!(lines.next_line(), None);
        }
        assert!(
            lines.buffer.len() <= 4 * CHUNK,
            "{} bytes held",
            lines.buffer.len()
        );
    }

    #[test]
    fn the_buffer_shrinks_after_a_long_line() {
        let mut lines = LineBuffer::new(32 << 20);
        let mut left = 10 << 20;
        while left > 0 {
            let room = lines.room();
            let bytes = room.len().min(left);
            room[..bytes].fill(b'x');
            left -= bytes;
            lines.filled(bytes);
            assert_eq!(lines.next_line(), None);
        }
        lines.room()[0] = b'\n';
        lines.filled(1);
        assert!(matches!(lines.next_line(), Some(Line::Text(line)) if line.len() == 10 << 20));
        assert!(lines.room().len() <= 4 * CHUNK);
    }
}
