//! Strings and their escapes.

use std::borrow::Cow;

use super::{Reader, StrictError};
use crate::json::scan::{BLOCK, in_block, special};

/// Minimum capacity for a string with escapes, whose length is not known yet.
const ROOM: usize = 256;

/// Capacity for one escape.
const ESCAPE: usize = char::MAX.len_utf8();

/// Growth factor of a full buffer. A larger buffer moves less often; unused capacity is returned
/// at the end.
const STEP: usize = 8;

/// The text of a string.
pub(in crate::json) enum Text<'de> {
    /// Without escapes, borrowed from the input.
    Borrowed(&'de str),
    Owned(String),
}

impl Text<'_> {
    pub(in crate::json) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'de> From<Text<'de>> for Cow<'de, str> {
    fn from(text: Text<'de>) -> Self {
        match text {
            Text::Borrowed(text) => Cow::Borrowed(text),
            Text::Owned(text) => Cow::Owned(text),
        }
    }
}

impl From<Text<'_>> for String {
    fn from(text: Text<'_>) -> Self {
        match text {
            Text::Borrowed(text) => text.to_owned(),
            Text::Owned(text) => text,
        }
    }
}

/// The end of a piece of a string.
enum End {
    Quote,
    Escape,
}

impl<'de> Reader<'de> {
    /// Reads a string from its opening quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'de>, StrictError> {
        self.at += 1;
        let (piece, end) = self.piece()?;
        match end {
            End::Quote => Ok(Text::Borrowed(piece)),
            End::Escape => self.escaped(piece).map(Text::Owned),
        }
    }

    /// Reads a string from its first escape on; `start` is the text before.
    fn escaped(&mut self, start: &str) -> Result<String, StrictError> {
        let (input, bytes) = (self.text, self.text.as_bytes());
        // A local variable stays in a register.
        let mut at = self.at;
        let mut text = String::new();
        // Long texts mostly consist of lines of similar length.
        let more = ROOM.max(start.len()).min(input.len() - at);
        make_room(&mut text, start.len() + more + ESCAPE);
        text.push_str(start);
        loop {
            match bytes.get(at) {
                Some(b'\\') => {}
                Some(b'"') => break,
                // A control character, or the end of the text.
                _ => return Err(StrictError::INVALID),
            }
            let (c, length) = escape(bytes, at).ok_or(StrictError::INVALID)?;
            text.push(c);
            at = copy_piece(&mut text, input, at + length);
        }
        self.at = at + 1;
        if text.capacity() - text.len() > ROOM.max(text.len()) {
            text.shrink_to_fit();
        }
        Ok(text)
    }

    /// Skips a string from its opening quote.
    pub(super) fn skip_string(&mut self) -> Result<(), StrictError> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            let rest = bytes.get(at..).ok_or(StrictError::INVALID)?;
            at += special(rest);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') => {}
                _ => return Err(StrictError::INVALID),
            }
            let length = match bytes.get(at + 1) {
                // A lone surrogate is valid JSON, although it is not text.
                Some(b'u') => bytes.get(at..).and_then(code).map(|_| 6),
                Some(byte) => simple(*byte).map(|_| 2),
                None => None,
            };
            at += length.ok_or(StrictError::INVALID)?;
        }
    }

    /// Consumes the text up to an escape, or up to and including the closing quote.
    #[inline]
    fn piece(&mut self) -> Result<(&'de str, End), StrictError> {
        let rest = self.text.get(self.at..).ok_or(StrictError::INVALID)?;
        let (piece, rest) = rest
            .split_at_checked(special(rest.as_bytes()))
            .ok_or(StrictError::INVALID)?;
        self.at += piece.len();
        match rest.as_bytes().first() {
            Some(b'"') => {
                self.at += 1;
                Ok((piece, End::Quote))
            }
            Some(b'\\') => Ok((piece, End::Escape)),
            // A control character, or the end of the text.
            _ => Err(StrictError::INVALID),
        }
    }
}

/// Appends `input` from `at` up to the next special byte, and returns the position of that byte.
/// Leaves capacity for one escape.
#[inline]
fn copy_piece(text: &mut String, input: &str, mut at: usize) -> usize {
    while let Some(block) = input.get(at..at + BLOCK) {
        let Some(bytes) = block.as_bytes().first_chunk() else {
            break;
        };
        ensure_room(text, BLOCK, input.len() - at);
        // Copying a block of constant size is much faster than copying a part of it.
        let start = text.len();
        text.push_str(block);
        if let Some(length) = in_block(bytes) {
            text.truncate(start + length);
            return at + length;
        }
        at += BLOCK;
    }
    // Near the end of the text, or at a block boundary inside a character.
    let rest = input.get(at..).unwrap_or_default();
    let piece = rest.get(..special(rest.as_bytes())).unwrap_or(rest);
    ensure_room(text, piece.len(), rest.len());
    text.push_str(piece);
    at + piece.len()
}

/// Reserves `length` bytes and one escape in `text`, with `left` bytes still to be read.
#[inline]
fn ensure_room(text: &mut String, length: usize, left: usize) {
    let length = length + ESCAPE;
    if text.capacity() - text.len() < length {
        let more = text.len().saturating_mul(STEP).min(left);
        make_room(text, length + more);
    }
}

#[cold]
fn make_room(text: &mut String, length: usize) {
    text.reserve_exact(length);
}

/// Returns the character and the length of the escape at `at`.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    match simple(*bytes.get(at + 1)?) {
        Some(byte) => Some((char::from(byte), 2)),
        None => unicode(bytes.get(at..)?),
    }
}

#[cold]
fn unicode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = code(bytes)?;
    if let Some(c) = char::from_u32(first.into()) {
        return Some((c, 6));
    }
    let second = code(bytes.get(6..)?)?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c, 12))
}

/// Returns the character of a backslash escape with `byte`.
#[inline]
fn simple(byte: u8) -> Option<u8> {
    match SIMPLE.get(usize::from(byte)) {
        None | Some(0) => None,
        Some(stands_for) => Some(*stands_for),
    }
}

/// Characters of the two-byte escapes by their second byte; zero for none. A table, because
/// branches on mixed escapes are mispredicted.
const SIMPLE: [u8; 128] = {
    let mut table = [0; 128];
    table[b'n' as usize] = b'\n';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b't' as usize] = b'\t';
    table[b'r' as usize] = b'\r';
    table[b'b' as usize] = 0x8;
    table[b'f' as usize] = 0xc;
    table
};

/// Returns the number of the escape `\uXXXX` at the start of `bytes`.
fn code(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(code << 4 | digit as u16)
    })
}
