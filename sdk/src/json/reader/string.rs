//! Strings: where they end, and what their escapes stand for.

use super::{Reader, Refused};
use crate::json::scan::special;

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
        let mut at = self.at + 1;
        loop {
            let rest = bytes.get(at..).ok_or(Refused)?;
            at += special(rest);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') => {}
                _ => return Err(Refused),
            }
            let length = match bytes.get(at + 1) {
                // Half of a surrogate pair is text to nobody, and JSON all the same.
                Some(b'u') => bytes.get(at..).and_then(code).map(|_| 6),
                Some(byte) => simple(*byte).map(|_| 2),
                None => None,
            };
            at += length.ok_or(Refused)?;
        }
    }

    /// Passes over the text up to the next quote, and over that, or up to an escape.
    #[inline]
    fn piece(&mut self) -> Result<(&'de str, End), Refused> {
        let rest = self.text.get(self.at..).ok_or(Refused)?;
        let (piece, rest) = rest
            .split_at_checked(special(rest.as_bytes()))
            .ok_or(Refused)?;
        self.at += piece.len();
        match rest.as_bytes().first() {
            Some(b'"') => {
                self.at += 1;
                Ok((piece, End::Quote))
            }
            Some(b'\\') => Ok((piece, End::Escape)),
            // It is a control character, or the end.
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
