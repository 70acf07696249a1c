//! Splits bytes into lines of bounded length.

use std::io::{self, ErrorKind, Read};

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that ended in a newline, which is not part of it.
    Whole(&'a [u8]),
    /// What followed the last newline when the bytes ended.
    Cut(&'a [u8]),
    /// A line of this many bytes, more than the limit.
    TooLong(u64),
}

/// How many bytes are asked for at once: what a pipe usually holds.
const CHUNK: usize = 64 << 10;

/// Splits a stream of bytes into lines.
///
/// It buffers at most one line. A line above the limit is counted and dropped as it arrives. Carriage
/// returns before the line feed are removed.
#[derive(Debug)]
pub struct Splitter {
    held: Vec<u8>,
    limit: usize,
    skipped: Option<u64>,
    /// Room for what [`Splitter::pull`] reads; empty until then.
    chunk: Vec<u8>,
}

impl Splitter {
    /// Creates a splitter that buffers lines of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            held: Vec::new(),
            limit,
            skipped: None,
            chunk: Vec::new(),
        }
    }

    /// Reads once and calls `each` for every line that ends in the bytes. Returns their number: 0 at
    /// the end of `source`, after [`finish`](Self::finish).
    ///
    /// # Errors
    /// Fails when reading fails for another reason than an interruption.
    pub fn pull(
        &mut self,
        source: &mut impl Read,
        mut each: impl FnMut(Line<'_>),
    ) -> io::Result<usize> {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(CHUNK, 0);
        let read = loop {
            match source.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(0) => self.finish(&mut each),
            Ok(length) => self.push(chunk.get(..length).unwrap_or_default(), &mut each),
            Err(_) => {}
        }
        self.chunk = chunk;
        read
    }

    /// Returns the length of the incomplete last line and its buffered bytes.
    #[must_use]
    pub fn unended(&self) -> (u64, &[u8]) {
        let bytes = self.skipped.unwrap_or(self.held.len() as u64);
        (bytes, &self.held)
    }

    /// Adds bytes and calls `each` for every line that ends in them.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if let Some(skipped) = self.skipped.take() {
                each(Line::TooLong(skipped + line.len() as u64));
            } else if self.held.is_empty() && line.len() <= self.limit {
                each(Line::Whole(trimmed(line)));
            } else if self.held.len() + line.len() > self.limit {
                each(Line::TooLong((self.held.len() + line.len()) as u64));
                self.held = Vec::new();
            } else {
                self.held.extend_from_slice(line);
                each(Line::Whole(trimmed(&self.held)));
                self.held.clear();
            }
        }
        if let Some(skipped) = &mut self.skipped {
            *skipped += bytes.len() as u64;
        } else if self.held.len() + bytes.len() > self.limit {
            self.skipped = Some((self.held.len() + bytes.len()) as u64);
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Drops the incomplete line because bytes were lost. With `open`, the next bytes are the rest of
    /// another line, which ends as [`Line::TooLong`].
    pub fn skip(&mut self, open: bool) {
        self.held = Vec::new();
        self.skipped = open.then_some(0);
    }

    /// Calls `each` for an incomplete last line.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if let Some(skipped) = self.skipped.take() {
            each(Line::TooLong(skipped));
        } else if !self.held.is_empty() {
            each(Line::Cut(&self.held));
            self.held = Vec::new();
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(limit: usize, pushes: &[&[u8]]) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut lines = Vec::new();
        let mut each = |line: Line<'_>| {
            lines.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                Line::Cut(line) => format!("cut {}", String::from_utf8_lossy(line)),
                Line::TooLong(length) => format!("long {length}"),
            });
        };
        for push in pushes {
            splitter.push(push, &mut each);
        }
        splitter.finish(&mut each);
        lines
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let text = b"a\r\n\nbcd\nef";
        let whole = split(100, &[text]);
        assert_eq!(whole, ["a", "", "bcd", "cut ef"]);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(100, &bytes), whole);
    }

    #[test]
    fn a_source_is_read_to_its_end() {
        let mut splitter = Splitter::new(100);
        let mut source: &[u8] = b"a\nb\nc";
        let mut lines = Vec::new();
        let mut each = |line: Line<'_>| lines.push(format!("{line:?}"));
        assert_eq!(splitter.pull(&mut source, &mut each).unwrap(), 5);
        assert_eq!(splitter.pull(&mut source, &mut each).unwrap(), 0);
        assert_eq!(lines, ["Whole([97])", "Whole([98])", "Cut([99])"]);
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_the_next_is_read() {
        assert_eq!(split(4, &[b"12345\nok\n"]), ["long 5", "ok"]);
        assert_eq!(split(4, &[b"123", b"45", b"678\nok\n"]), ["long 8", "ok"]);
        assert_eq!(split(4, &[b"123", b"45\nok"]), ["long 5", "cut ok"]);
        assert_eq!(split(4, &[b"123456"]), ["long 6"]);
        assert_eq!(split(4, &[b"1234\n"]), ["1234"]);
    }
}
