//! Strings: where they end, and what their escapes stand for.

use super::{Reader, StrictError};
use crate::json::scan::{BLOCK, in_block, special};

/// The least room for a string with escapes, whose length is known in the end.
const ROOM: usize = 256;

/// The room for what an escape stands for.
const ESCAPE: usize = char::MAX.len_utf8();

/// How much longer a string may become, by what it has become when room is short. More room
/// means that the text is moved less often; half of it is given back if it is not needed.
const STEP: usize = 8;

/// The text that a string stands for.
pub(super) enum Text<'de> {
    /// There is no escape in it, so it stands in the input as it is.
    Borrowed(&'de str),
    Owned(String),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

/// What a piece of a string ends with.
enum End {
    Quote,
    Escape,
}

impl<'de> Reader<'de> {
    /// Reads a string, at whose first quote the reader is.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text<'de>, StrictError> {
        self.at += 1;
        let (piece, end) = self.piece()?;
        match end {
            End::Quote => Ok(Text::Borrowed(piece)),
            End::Escape => self.escaped(piece).map(Text::Owned),
        }
    }

    /// Reads the rest of a string from its first escape on, of which `start` comes before.
    fn escaped(&mut self, start: &str) -> Result<String, StrictError> {
        let (input, bytes) = (self.text, self.text.as_bytes());
        // A variable of its own need not be stored and fetched at every step.
        let mut at = self.at;
        let mut text = String::new();
        // Long texts are mostly lines of similar length.
        let more = ROOM.max(start.len()).min(input.len() - at);
        make_room(&mut text, start.len() + more + ESCAPE);
        text.push_str(start);
        loop {
            match bytes.get(at) {
                Some(b'\\') => {}
                Some(b'"') => break,
                // It is a control character, or the end.
                _ => return Err(StrictError::SYNTAX),
            }
            let (c, length) = escape(bytes, at).ok_or(StrictError::SYNTAX)?;
            text.push(c);
            at = copy_piece(&mut text, input, at + length);
        }
        self.at = at + 1;
        if text.capacity() - text.len() > ROOM.max(text.len()) {
            text.shrink_to_fit();
        }
        Ok(text)
    }

    /// Passes over a string whose text nobody wants, at whose first quote the reader is.
    pub(super) fn skip_string(&mut self) -> Result<(), StrictError> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            let rest = bytes.get(at..).ok_or(StrictError::SYNTAX)?;
            at += special(rest);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') => {}
                _ => return Err(StrictError::SYNTAX),
            }
            let length = match bytes.get(at + 1) {
                // Half of a surrogate pair is text to nobody, and JSON all the same.
                Some(b'u') => bytes.get(at..).and_then(code).map(|_| 6),
                Some(byte) => simple(*byte).map(|_| 2),
                None => None,
            };
            at += length.ok_or(StrictError::SYNTAX)?;
        }
    }

    /// Passes over the text up to the next quote, and over that, or up to an escape.
    #[inline]
    fn piece(&mut self) -> Result<(&'de str, End), StrictError> {
        let rest = self.text.get(self.at..).ok_or(StrictError::SYNTAX)?;
        let (piece, rest) = rest
            .split_at_checked(special(rest.as_bytes()))
            .ok_or(StrictError::SYNTAX)?;
        self.at += piece.len();
        match rest.as_bytes().first() {
            Some(b'"') => {
                self.at += 1;
                Ok((piece, End::Quote))
            }
            Some(b'\\') => Ok((piece, End::Escape)),
            // It is a control character, or the end.
            _ => Err(StrictError::SYNTAX),
        }
    }
}

/// Appends to `text` what `input` has from `at` to its next special byte, and gives the place
/// of that. There is room in `text` for an escape more then.
#[inline]
fn copy_piece(text: &mut String, input: &str, mut at: usize) -> usize {
    while let Some(block) = input.get(at..at + BLOCK) {
        let Some(bytes) = block.as_bytes().first_chunk() else {
            break;
        };
        ensure_room(text, BLOCK, input.len() - at);
        // A block as a whole is copied in a fraction of the time that a part of it takes.
        let start = text.len();
        text.push_str(block);
        if let Some(length) = in_block(bytes) {
            text.truncate(start + length);
            return at + length;
        }
        at += BLOCK;
    }
    // The end is near, or the end of a block is inside a character.
    let rest = input.get(at..).unwrap_or_default();
    let piece = rest.get(..special(rest.as_bytes())).unwrap_or(rest);
    ensure_room(text, piece.len(), rest.len());
    text.push_str(piece);
    at + piece.len()
}

/// Makes sure that `length` bytes find room in `text`, and an escape behind them, when there
/// are `left` to be read.
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

/// The character that the escape at `at` stands for, and the escape's length.
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

/// What the escape of a backslash and `byte` stands for.
#[inline]
fn simple(byte: u8) -> Option<u8> {
    match SIMPLE.get(usize::from(byte)) {
        None | Some(0) => None,
        Some(stands_for) => Some(*stands_for),
    }
}

/// What the escapes of a backslash and one byte stand for, by that byte; zero for the others.
/// A table, for escapes of all kinds take turns, and no branch can be foretold.
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

/// The number of the escape `\uXXXX` that `bytes` start with.
fn code(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |code, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(code << 4 | digit as u16)
    })
}
