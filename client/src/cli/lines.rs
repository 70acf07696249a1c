//! Splits bytes into lines of bounded length.

/// A line without its line feed and a preceding carriage return.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Whole(&'a [u8]),
    /// A line of this many bytes, which were dropped.
    TooLong(u64),
}

/// Splits a stream of bytes into lines. Buffers one line at most.
#[derive(Debug)]
pub(super) struct Splitter {
    held: Vec<u8>,
    limit: usize,
    /// The number of dropped bytes of a line that is too long.
    skipped: Option<u64>,
}

impl Splitter {
    /// Creates a splitter with a maximum line length of `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            held: Vec::new(),
            limit,
            skipped: None,
        }
    }

    /// Adds bytes and calls `each` for every complete line.
    pub(super) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            self.hold(text);
            if ends {
                self.finish(&mut each);
            }
        }
    }

    fn hold(&mut self, text: &[u8]) {
        let length = self.held.len() + text.len();
        match &mut self.skipped {
            Some(skipped) => *skipped += text.len() as u64,
            None if length > self.limit => {
                self.skipped = Some(length as u64);
                self.held = Vec::new();
            }
            None => self.held.extend_from_slice(text),
        }
    }

    /// Calls `each` for an incomplete last line.
    pub(super) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        match self.skipped.take() {
            Some(bytes) => each(Line::TooLong(bytes)),
            None => each(Line::Whole(
                self.held.strip_suffix(b"\r").unwrap_or(&self.held),
            )),
        }
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut lines = Vec::new();
        let mut each = |line: Line<'_>| {
            lines.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong(bytes) => format!("#{bytes}"),
            });
        };
        for piece in pieces {
            splitter.push(piece.as_bytes(), &mut each);
        }
        splitter.finish(each);
        lines
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        assert_eq!(
            lines(9, &["a", "b\nc\r\n", "\n", "d"]),
            ["ab", "c", "", "d"]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_counted() {
        assert_eq!(
            lines(3, &["abc\nab", "cd", "e\nf\n"]),
            ["abc", "#5", "f", ""]
        );
    }
}
