//! The bounded output of a terminal.
//!
//! Guarantees: keeps the latest bytes up to the limit, and for streams at least [`SHORTEST`]. Returned
//! text starts and ends at character boundaries and does not exceed the limit.

use std::collections::VecDeque;

/// The number of bytes that are kept for streams even if the limit is lower, because the agent chooses
/// the limit.
const SHORTEST: usize = 64 << 10;

/// The maximum number of bytes of a chunk.
const LONGEST_CHUNK: usize = 64 << 10;

/// The end of a stream of text.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    /// The number of bytes so far, dropped ones included.
    total: u64,
    /// Whether the stream has ended, so that an incomplete character at the end stays incomplete.
    ended: bool,
}

/// A part of a terminal's output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputChunk {
    /// The position of the first byte: the number of bytes that were printed before.
    pub position: u64,
    /// At most 64 KiB as they were printed. A character may continue in the next chunk.
    pub bytes: Vec<u8>,
    /// The number of bytes directly before `position` that this reader has missed, because it was slower
    /// than the command.
    pub missed: u64,
}

impl Output {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            total: 0,
            ended: false,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let most = self.limit.max(SHORTEST);
        let kept = &chunk[chunk.len().saturating_sub(most)..];
        let excess = (self.bytes.len() + chunk.len()).saturating_sub(most);
        self.total += chunk.len() as u64;
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// Marks the end of the stream.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the bytes from `position` on as far as they are kept; `None` if there are none yet.
    pub(crate) fn chunk(&self, position: u64) -> Option<OutputChunk> {
        if self.total <= position {
            return None;
        }
        let first = self.total - self.bytes.len() as u64;
        let start = position.max(first);
        let skipped = usize::try_from(start - first).unwrap_or(usize::MAX);
        let bytes = self.bytes.iter().skip(skipped).take(LONGEST_CHUNK);
        Some(OutputChunk {
            position: start,
            bytes: bytes.copied().collect(),
            missed: start - position,
        })
    }

    /// Returns whether a reader at `position` need not wait.
    pub(crate) fn is_ready(&self, position: u64) -> bool {
        self.ended || self.total > position
    }

    /// Returns the kept text up to the limit, and whether earlier text was dropped.
    ///
    /// Invalid UTF-8 is replaced by U+FFFD. A character whose last bytes have not been received yet is
    /// omitted.
    pub(crate) fn text(&self) -> (String, bool) {
        let over = self.bytes.len().saturating_sub(self.limit);
        let bytes: Vec<u8> = self.bytes.range(over..).copied().collect();
        let mut truncated = self.total > bytes.len() as u64;
        let mut bytes = &bytes[..];
        if truncated {
            // An incomplete character has at most three bytes.
            let rest = bytes
                .iter()
                .take(3)
                .take_while(|byte| is_continuation(**byte));
            bytes = &bytes[rest.count()..];
        }
        if !self.ended {
            bytes = without_unfinished_character(bytes);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // U+FFFD has three bytes and may replace a single one.
        if text.len() > self.limit {
            let excess = text.len() - self.limit;
            let cut = (excess..text.len()).find(|at| text.is_char_boundary(*at));
            text.drain(..cut.unwrap_or(text.len()));
            truncated = true;
        }
        (text, truncated)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

fn without_unfinished_character(bytes: &[u8]) -> &[u8] {
    let unfinished = (1..=3.min(bytes.len())).find(|length| {
        let end = &bytes[bytes.len() - length..];
        matches!(std::str::from_utf8(end), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
    });
    &bytes[..bytes.len() - unfinished.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(limit: usize, chunks: &[&[u8]]) -> (String, bool) {
        let mut output = Output::new(limit);
        chunks.iter().for_each(|chunk| output.push(chunk));
        output.end();
        output.text()
    }

    #[test]
    fn the_latest_bytes_are_kept() {
        assert_eq!(printed(5, &[b"abc", b"de"]), ("abcde".to_owned(), false));
        assert_eq!(printed(5, &[b"abc", b"def"]), ("bcdef".to_owned(), true));
        assert_eq!(
            printed(5, &[b"ab", b"0123456789"]),
            ("56789".to_owned(), true)
        );
        assert_eq!(printed(0, &[b"a"]), (String::new(), true));
        assert_eq!(printed(0, &[]), (String::new(), false));
    }

    #[test]
    fn a_low_limit_leaves_enough_for_streams() {
        let mut output = Output::new(5);
        output.push(b"0123456789");
        assert_eq!(output.text(), ("56789".to_owned(), true));
        let chunk = output.chunk(2).unwrap();
        assert_eq!((&chunk.bytes[..], chunk.missed), (&b"23456789"[..], 0));
        assert_eq!(output.chunk(10), None);
        output.push(&[0; SHORTEST]);
        let chunk = output.chunk(2).unwrap();
        let expected = (10, LONGEST_CHUNK, 8);
        let found = (chunk.position, chunk.bytes.len(), chunk.missed);
        assert_eq!(found, expected);
    }

    #[test]
    fn truncation_never_splits_a_character() {
        let text = "aä€😀".repeat(20);
        for limit in 0..text.len() + 2 {
            let (kept, truncated) = printed(limit, &[text.as_bytes()]);
            assert!(text.ends_with(&kept), "limit {limit}: {kept:?}");
            assert!(kept.len() <= limit && kept.len() + 3 >= limit.min(text.len()));
            assert_eq!(truncated, limit < text.len());
        }
    }

    #[test]
    fn a_character_that_arrives_in_pieces_is_never_half() {
        let mut output = Output::new(100);
        let bytes = "x€😀".as_bytes();
        let mut seen = Vec::new();
        for byte in bytes {
            output.push(&[*byte]);
            seen.push(output.text().0);
        }
        let expected = ["x", "x", "x", "x€", "x€", "x€", "x€", "x€😀"];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_no_text_is_marked_and_stays_within_the_limit() {
        assert_eq!(printed(100, &[b"a\xffb"]).0, "a\u{fffd}b");
        assert_eq!(printed(100, &["€".as_bytes().split_at(2).0]).0, "\u{fffd}");
        let (text, truncated) = printed(10, &[&[0xff; 10]]);
        assert_eq!(
            (text.as_str(), truncated),
            ("\u{fffd}\u{fffd}\u{fffd}", true)
        );
    }
}
