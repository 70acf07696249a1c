//! The latest output of a command.
//!
//! Keeps at most `limit` bytes, the latest ones. Text begins and ends at character boundaries and
//! is not longer than the limit either.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Output {
    bytes: VecDeque<u8>,
    limit: usize,
    /// Bytes were dropped at the beginning.
    truncated: bool,
    /// Nothing follows: an incomplete character at the end stays incomplete.
    ended: bool,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            truncated: false,
            ended: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        let excess = (self.bytes.len() + chunk.len()).saturating_sub(self.limit);
        self.truncated |= excess > 0;
        self.bytes.drain(..excess.min(self.bytes.len()));
        let kept = chunk.len().saturating_sub(self.limit);
        self.bytes.extend(&chunk[kept..]);
    }

    /// Nothing is pushed any more.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the last `most` bytes of the text, and whether something before them is missing.
    ///
    /// Bytes that are no UTF-8 become U+FFFD. A character whose rest has not arrived is left out.
    pub(super) fn text(&self, most: usize) -> (String, bool) {
        let most = most.min(self.limit);
        let skipped = self.bytes.len().saturating_sub(most);
        let bytes: Vec<u8> = self.bytes.iter().skip(skipped).copied().collect();
        let mut truncated = self.truncated || skipped > 0;
        let mut bytes = bytes.as_slice();
        if truncated {
            // At most three bytes can be the rest of a character that was cut.
            let rest = bytes.iter().take(3);
            let rest = rest.take_while(|byte| is_continuation(**byte)).count();
            bytes = bytes.get(rest..).unwrap_or_default();
        }
        if !self.ended {
            bytes = without_incomplete_character(bytes);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // U+FFFD has three bytes and may stand for one.
        if text.len() > most {
            let excess = text.len() - most;
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

fn without_incomplete_character(bytes: &[u8]) -> &[u8] {
    let incomplete = (1..=3.min(bytes.len())).find(|length| {
        let end = &bytes[bytes.len() - length..];
        let error = std::str::from_utf8(end).err();
        error.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    &bytes[..bytes.len() - incomplete.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(limit: usize, chunks: &[&[u8]]) -> (String, bool) {
        let mut output = Output::new(limit);
        chunks.iter().for_each(|chunk| output.push(chunk));
        output.end();
        output.text(usize::MAX)
    }

    #[test]
    fn the_latest_bytes_are_kept() {
        assert_eq!(printed(5, &[b"abc", b"de"]), ("abcde".to_owned(), false));
        assert_eq!(printed(5, &[b"abc", b"def"]), ("bcdef".to_owned(), true));
        let long: [&[u8]; 2] = [b"ab", b"0123456789"];
        assert_eq!(printed(5, &long), ("56789".to_owned(), true));
        assert_eq!(printed(0, &[b"a"]), (String::new(), true));
        assert_eq!(printed(0, &[]), (String::new(), false));
    }

    #[test]
    fn a_character_is_never_cut() {
        let text = "aä€😀".repeat(20);
        let mut output = Output::new(1000);
        output.push(text.as_bytes());
        for limit in 0..text.len() + 2 {
            let kept = printed(limit, &[text.as_bytes()]);
            assert!(text.ends_with(&kept.0), "limit {limit}: {kept:?}");
            assert!(kept.0.len() <= limit && kept.0.len() + 3 >= limit.min(text.len()));
            assert_eq!(kept.1, limit < text.len());
            assert_eq!(output.text(limit), kept, "the same from a longer buffer");
        }
    }

    #[test]
    fn a_character_in_pieces_is_shown_when_it_is_complete() {
        let mut output = Output::new(100);
        let mut seen = Vec::new();
        for byte in "x€😀".as_bytes() {
            output.push(&[*byte]);
            seen.push(output.text(100).0);
        }
        let expected = ["x", "x", "x", "x€", "x€", "x€", "x€", "x€😀"];
        assert_eq!(seen, expected);
    }

    #[test]
    fn bytes_that_are_no_text_stay_within_the_limit() {
        assert_eq!(printed(100, &[b"a\xffb"]).0, "a\u{fffd}b");
        assert_eq!(printed(100, &[&[0xe2, 0x82]]).0, "\u{fffd}");
        assert_eq!(printed(10, &[&[0xff; 10]]), ("\u{fffd}".repeat(3), true));
    }
}
