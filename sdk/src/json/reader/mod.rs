//! The strict pass: reads JSON text as a type, without leniency.
//!
//! It is faster than serde_json because it only reads complete UTF-8 text, copies a string with
//! escapes once, searches strings in blocks, and gives no reason for most errors: the lenient
//! pass finds it. A number is an integer by its value, as in JSON Schema (`1.0` and `1e2` are).

mod envelope;
mod error;
mod number;
mod object;
mod pattern;
mod raw;
mod skip;
mod string;
#[cfg(test)]
mod tests;
mod unions;
mod values;

use serde_core::de::DeserializeOwned;

pub(crate) use self::envelope::{read_members, read_text};
pub use self::error::StrictError;
pub use self::object::{Object, OpenObject, Position};
pub use self::pattern::TextPattern;
pub(super) use self::raw::{RawJson, boxed, raw};
use self::string::Text;
pub use self::unions::{read_object_union, read_value_union};
use super::errors::message;

/// The deepest nesting of typed values, as in serde_json.
const MAX_DEPTH: u8 = 128;

/// Returns the unparsed items of an array.
pub(super) fn items(text: &str) -> Result<Vec<&str>, StrictError> {
    let (mut reader, mut items, mut first) = (Reader::new(text), Vec::new(), true);
    reader.expect(b'[')?;
    while reader.more(b']', &mut first)? {
        items.push(reader.value()?);
    }
    Ok(items)
}

/// A text and the current position.
///
/// Typed values nest at most 128 levels deep. Values that are skipped or kept as text nest to any
/// depth.
#[derive(Debug)]
pub struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns the next byte after white space without consuming it.
    #[inline]
    fn next(&mut self) -> Result<u8, StrictError> {
        match self.peek() {
            Some(byte) if byte > b' ' => Ok(byte),
            _ => {
                self.blank();
                self.peek().ok_or(StrictError::INVALID)
            }
        }
    }

    #[cold]
    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Returns whether nothing but white space follows.
    #[inline(always)]
    pub(super) fn is_at_end(&mut self) -> bool {
        self.blank();
        self.at == self.text.len()
    }

    /// Consumes `byte`, which must come next.
    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), StrictError> {
        if self.next()? != byte {
            return Err(StrictError::INVALID);
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes `word`, which must come next. The caller checks what follows.
    fn word(&mut self, word: &str) -> Result<(), StrictError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(StrictError::INVALID);
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), StrictError> {
        if self.depth == MAX_DEPTH {
            return Err(StrictError::new(self.at, "nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Consumes the closing bracket, which comes next.
    #[inline]
    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// Returns the text of the value that comes next, and skips it.
    pub(super) fn value(&mut self) -> Result<&'de str, StrictError> {
        self.next()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at).ok_or(StrictError::INVALID)
    }

    /// Reads the string that comes next.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Text<'de>, StrictError> {
        match self.next()? {
            b'"' => self.string(),
            _ => Err(StrictError::INVALID),
        }
    }

    /// Reads the string that comes next as a `T`, without an intermediate `String`.
    ///
    /// # Errors
    /// Fails when something else comes next.
    pub fn text_as<T: for<'a> From<&'a str>>(&mut self) -> Result<T, StrictError> {
        self.text().map(|text| T::from(text.as_str()))
    }

    /// Consumes `null`, if it comes next.
    #[inline]
    fn null(&mut self) -> Result<bool, StrictError> {
        match self.next()? {
            b'n' => self.word("null").map(|()| true),
            _ => Ok(false),
        }
    }

    /// Lets serde_json read the value that comes next.
    ///
    /// # Errors
    /// Fails when the value is not a `T`.
    pub(super) fn parse<T: DeserializeOwned>(&mut self) -> Result<T, StrictError> {
        self.next()?;
        let start = self.at;
        let text = self.value()?;
        serde_json::from_str(text).map_err(|error| {
            // The column is that behind the invalid value.
            let lines = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            let offset = lines.map(str::len).sum::<usize>() + error.column();
            StrictError::new(start + offset.saturating_sub(1), message(&error))
        })
    }
}
