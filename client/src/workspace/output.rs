//! The bounded output of a terminal.
//!
//! Guarantees: keeps the latest bytes up to the limit. Returned text starts and ends at character
//! boundaries and does not exceed the limit.

use std::collections::VecDeque;

/// The end of a stream of text.
#[derive(Debug)]
pub(crate) struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    /// Whether the start of the output was dropped.
    truncated: bool,
    /// Whether the stream has ended, so that an incomplete character at the end stays incomplete.
    ended: bool,
}

impl Output {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            truncated: false,
            ended: false,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let kept = &chunk[chunk.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + chunk.len()).saturating_sub(self.limit);
        self.truncated |= excess > 0;
        self.bytes.drain(..excess.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// Marks the end of the stream.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the kept text, and whether earlier text was dropped.
    ///
    /// Invalid UTF-8 is replaced by U+FFFD. A character whose last bytes have not been received yet is
    /// omitted.
    pub(crate) fn text(&self) -> (String, bool) {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let mut bytes = &bytes[..];
        if self.truncated {
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
        let mut truncated = self.truncated;
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
