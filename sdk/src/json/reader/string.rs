//! Strings: where they end, and what their escapes stand for.

use super::{Reader, Refused};

/// The least room for a string with escapes, whose length is known in the end.
const ROOM: usize = 256;

/// The text that a string stands for.
pub(super) enum Text<'de> {
    /// There is no escape in it, so it stands in the input as it is.
    Borrowed(&'de str),
    Owned(String),
}

/// What a piece of a string ends with.
enum End {
    Quote,
    Escape,
}

impl<'de> Reader<'de> {
    /// Reads a string, at whose first quote the reader is.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'de>, Refused> {
        self.at += 1;
        let (piece, end) = self.piece()?;
        match end {
            End::Quote => Ok(Text::Borrowed(piece)),
            End::Escape => self.escaped(piece).map(Text::Owned),
        }
    }

    /// Reads the rest of a string from its first escape on, of which `start` comes before.
    fn escaped(&mut self, start: &str) -> Result<String, Refused> {
        // Long texts are mostly lines of similar length; what is left bounds the room.
        let rest = self.text.len() - self.at;
        let mut text = String::with_capacity(start.len() + rest.min(ROOM.max(start.len())));
        text.push_str(start);
        loop {
            text.push(self.escape()?);
            let (piece, end) = self.piece()?;
            text.push_str(piece);
            if let End::Quote = end {
                return Ok(text);
            }
        }
    }

    /// Passes over a string whose text nobody wants, at whose first quote the reader is.
    pub(super) fn skip_string(&mut self) -> Result<(), Refused> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = plain(bytes, start);
        while let Some(b'\\') = bytes.get(end) {
            let length = match bytes.get(end + 1) {
                // Half of a surrogate pair is text to nobody, and JSON all the same.
                Some(b'u') => bytes.get(end..).and_then(code).map(|_| 6),
                Some(byte) => simple(*byte).map(|_| 2),
                None => None,
            };
            end = plain(bytes, end + length.ok_or(Refused)?);
        }
        let text = bytes.get(start..end).ok_or(Refused)?;
        if bytes.get(end).is_none() || self.controls && has_control(text) {
            return Err(Refused);
        }
        self.at = end + 1;
        Ok(())
    }

    /// Passes over the text up to the next quote, and over that, or up to an escape.
    #[inline]
    fn piece(&mut self) -> Result<(&'de str, End), Refused> {
        let bytes = self.text.as_bytes();
        let (start, end) = (self.at, plain(bytes, self.at));
        let piece = self.text.get(start..end).ok_or(Refused)?;
        if self.controls && has_control(piece.as_bytes()) {
            return Err(Refused);
        }
        match bytes.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok((piece, End::Quote))
            }
            Some(b'\\') => {
                self.at = end;
                Ok((piece, End::Escape))
            }
            _ => Err(Refused),
        }
    }

    /// Passes over an escape, and gives its character.
    #[inline]
    fn escape(&mut self) -> Result<char, Refused> {
        let byte = self.text.as_bytes().get(self.at + 1).ok_or(Refused)?;
        if let Some(byte) = simple(*byte) {
            self.at += 2;
            return Ok(char::from(byte));
        }
        self.unicode()
    }

    #[cold]
    fn unicode(&mut self) -> Result<char, Refused> {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let first = code(bytes).ok_or(Refused)?;
        if let Some(c) = char::from_u32(first.into()) {
            self.at += 6;
            return Ok(c);
        }
        let second = bytes.get(6..).and_then(code).ok_or(Refused)?;
        self.at += 12;
        match char::decode_utf16([first, second]).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err(Refused),
        }
    }
}

/// What the escape of a backslash and `byte` stands for.
#[inline]
fn simple(byte: u8) -> Option<u8> {
    Some(match byte {
        b'n' => b'\n',
        b'"' | b'\\' | b'/' => byte,
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x8,
        b'f' => 0xc,
        _ => return None,
    })
}

/// The number of the escape `\uXXXX` that `bytes` start with.
fn code(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(code << 4 | digit as u16)
    })
}

/// Whether there are bytes that may not be in a string.
pub(super) fn has_control(bytes: &[u8]) -> bool {
    // The smallest of all, and no early end: a compiler makes vector instructions of it.
    let (blocks, rest) = bytes.as_chunks::<32>();
    let least = |least: u8, byte: &u8| least.min(*byte);
    let in_block = |block: &[u8; 32]| block.iter().fold(u8::MAX, least) < 0x20;
    blocks.iter().any(in_block) || rest.iter().fold(u8::MAX, least) < 0x20
}

/// Where the next quote or escape is, from `at` on; the end if there is none.
#[inline]
fn plain(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    // Most names and tags are short, so words come before a search that has to be set up.
    let Some((words, rest)) = rest.split_first_chunk::<16>() else {
        let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        return at + found.unwrap_or(rest.len());
    };
    let words = u128::from_le_bytes(*words);
    let (low, high) = (words as u64, (words >> 64) as u64);
    if let Some(offset) = first_special(low) {
        return at + offset;
    }
    if let Some(offset) = first_special(high) {
        return at + 8 + offset;
    }
    let found = memchr::memchr2(b'"', b'\\', rest);
    at + 16 + found.unwrap_or(rest.len())
}

/// The first quote or backslash among the eight bytes of a word, the lowest first.
#[inline]
fn first_special(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is zero, if no lower byte borrowed: what is above the
    // first hit may be wrong, and does not matter.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is = |byte: u8| zero(word ^ (ONES * u64::from(byte)));
    let hits = (is(b'"') | is(b'\\')) & HIGH;
    (hits != 0).then(|| hits.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::{first_special, has_control, plain};

    #[test]
    fn special_bytes_are_found_wherever_they_are() {
        for byte in 0..=u8::MAX {
            for around in [b'a', 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff] {
                for at in 0..8 {
                    let mut word = [around; 8];
                    word[at] = byte;
                    let first = word.iter().position(|byte| b"\"\\".contains(byte));
                    assert_eq!(first_special(u64::from_le_bytes(word)), first, "{word:?}");
                }
            }
        }
    }

    #[test]
    fn plain_text_of_any_length_ends_where_it_should() {
        for length in 0..120 {
            let mut text = vec![b'x'; length];
            assert_eq!(plain(&text, 0), length);
            text.extend_from_slice(b"\"and more after that, enough for a block or two");
            assert_eq!(plain(&text, 0), length);
        }
    }

    #[test]
    fn control_characters_are_found_wherever_they_are() {
        for length in 1..100 {
            let mut text = vec![b' '; length];
            assert!(!has_control(&text));
            for at in 0..length {
                text[at] = 0x1f;
                assert!(has_control(&text));
                text[at] = 0xff;
            }
        }
    }
}
