//! The strict pass: a serde deserializer for JSON text.
//!
//! It is faster than serde_json because it only reads complete UTF-8 text. It copies a string
//! with escapes once and searches strings in blocks. The path of an error is found afterwards.
//!
//! It differs from serde_json in two points: a struct cannot be read from an array, and a number
//! is an integer by its value, as in JSON Schema (`1.0` and `1e2` are integers).

mod access;
mod envelope;
mod error;
mod key;
mod number;
mod pattern;
mod skip;
mod string;
#[cfg(test)]
mod tests;
mod variant;

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde_core::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use self::access::{Items, Members, RawText, Whole};
pub(crate) use self::envelope::{read_members, read_text};
pub(crate) use self::error::StrictError;
pub use self::pattern::TextPattern;
use self::string::Text;
use super::raw_value;

/// The deepest nesting that is read, as in serde_json.
const MAX_DEPTH: u8 = 128;

/// Reads `text` as a `T`, without leniency.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, StrictError> {
    finish(&mut Reader::new(text))
}

/// Reads `text` as a `T`. Values that are skipped or kept as text may nest to any depth.
pub(super) fn read_deep<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, StrictError> {
    finish(&mut Reader::deep(text))
}

/// Reads as [`read_deep`] does; the error comes with the JSON Pointer of the invalid value.
pub(super) fn read_or_locate<T: DeserializeOwned>(text: &str) -> Result<T, (String, StrictError)> {
    let mut reader = Reader::deep(text);
    finish(&mut reader).map_err(|error| (reader.place(), error))
}

/// Always inlined: a call takes as long as the smallest messages.
#[inline(always)]
fn finish<'de, T: Deserialize<'de>>(reader: &mut Reader<'de>) -> Result<T, StrictError> {
    // One variable for the result, because `?` would copy the whole message.
    let mut value = T::deserialize(&mut *reader);
    if value.is_ok() {
        reader.blank();
        if reader.at != reader.text.len() {
            value = Err(StrictError::SYNTAX);
        }
    }
    value
}

/// Turns `text`, which must be valid JSON, into a raw value.
pub(super) fn raw(text: &str) -> Result<&RawValue, StrictError> {
    <&RawValue>::deserialize(Whole(BorrowedStrDeserializer::new(text)))
}

/// Turns an owned text, which must be valid JSON, into a raw value without a copy.
pub(super) fn boxed(text: String) -> Result<Box<RawValue>, StrictError> {
    Box::<RawValue>::deserialize(Whole(text.into_deserializer()))
}

/// A text and the current position.
pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
    /// Whether skipped values may nest deeper than [`MAX_DEPTH`].
    deep: bool,
    /// Position of the last closing bracket; the largest number before the first one. An error
    /// there belongs to the list or object, not to its last value.
    closed: usize,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            deep: false,
            closed: usize::MAX,
        }
    }

    /// Creates a reader that skips values of any depth.
    pub(super) fn deep(text: &'de str) -> Self {
        Self {
            deep: true,
            ..Self::new(text)
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
                self.peek().ok_or(StrictError::SYNTAX)
            }
        }
    }

    #[cold]
    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Consumes `byte`, which must come next.
    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), StrictError> {
        if self.next()? != byte {
            return Err(StrictError::SYNTAX);
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes `word`, which must come next. The caller checks what follows.
    fn word(&mut self, word: &str) -> Result<(), StrictError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(StrictError::SYNTAX);
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), StrictError> {
        if self.depth == MAX_DEPTH {
            return Err(StrictError::too_deep());
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Consumes the closing bracket after `value`; fails if something else follows.
    #[inline]
    fn leave<T>(&mut self, close: u8, value: &mut Result<T, StrictError>) {
        self.depth -= 1;
        if value.is_ok() && self.expect(close).is_err() {
            self.closed = self.at;
            *value = Err(StrictError::too_many(close));
        }
    }

    fn map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        if self.next()? != b'{' {
            return Err(self.mismatch(&visitor));
        }
        self.enter()?;
        let mut value = visitor.visit_map(Members::new(self));
        self.leave(b'}', &mut value);
        value
    }

    fn seq<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        if self.next()? != b'[' {
            return Err(self.mismatch(&visitor));
        }
        self.enter()?;
        let mut value = visitor.visit_seq(Items::new(self));
        self.leave(b']', &mut value);
        value
    }

    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        if self.next()? != b'"' {
            return Err(self.mismatch(&visitor));
        }
        match self.string()? {
            Text::Borrowed(text) => visitor.visit_borrowed_str(text),
            Text::Owned(text) => visitor.visit_string(text),
        }
    }

    fn unit<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        if self.next()? != b'n' {
            return Err(self.mismatch(&visitor));
        }
        self.word("null")?;
        visitor.visit_unit()
    }

    fn boolean<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        let value = match self.next()? {
            b't' => true,
            b'f' => false,
            _ => return Err(self.mismatch(&visitor)),
        };
        self.word(if value { "true" } else { "false" })?;
        visitor.visit_bool(value)
    }

    /// Reads bytes from a string or a list of numbers.
    fn bytes<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, StrictError> {
        match self.next()? {
            b'"' => match self.string()? {
                Text::Borrowed(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
                Text::Owned(text) => visitor.visit_byte_buf(text.into_bytes()),
            },
            b'[' => self.seq(visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }
}

/// Methods that read one kind of JSON value, whatever type is requested.
macro_rules! forward {
    ($($method:ident => $form:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
            self.$form(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = StrictError;

    forward! {
        deserialize_bool => boolean,
        deserialize_i8 => integer,
        deserialize_i16 => integer,
        deserialize_i32 => integer,
        deserialize_i64 => integer,
        deserialize_i128 => integer,
        deserialize_u8 => integer,
        deserialize_u16 => integer,
        deserialize_u32 => integer,
        deserialize_u64 => integer,
        deserialize_u128 => integer,
        deserialize_f32 => float,
        deserialize_f64 => float,
        deserialize_char => text,
        deserialize_str => text,
        deserialize_string => text,
        deserialize_identifier => text,
        deserialize_unit => unit,
        deserialize_seq => seq,
        deserialize_map => map,
        deserialize_bytes => bytes,
        deserialize_byte_buf => bytes,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
        match self.next()? {
            b'"' => self.text(visitor),
            b'{' => self.map(visitor),
            b'[' => self.seq(visitor),
            b'n' => self.unit(visitor),
            b't' | b'f' => self.boolean(visitor),
            _ => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
        if self.next()? != b'n' {
            return visitor.visit_some(self);
        }
        self.word("null")?;
        visitor.visit_none()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        if !raw_value::is_asked(name) {
            return visitor.visit_newtype_struct(self);
        }
        self.next()?;
        let start = self.at;
        self.skip()?;
        let text = self.text.get(start..self.at).ok_or(StrictError::SYNTAX)?;
        visitor.visit_map(RawText::new(name, BorrowedStrDeserializer::new(text)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        self.variant(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
        self.skip()?;
        visitor.visit_unit()
    }
}
