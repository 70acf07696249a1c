//! The strict pass: serde's data, straight from a text.
//!
//! It is what serde_json does, for the one case that matters on the wire: the whole
//! text is there and known to be UTF-8, and nobody asks why it is refused, for the
//! second pass finds that out. So errors are empty, a string with escapes is copied
//! once, and is looked through by words and blocks.
//!
//! An object is nothing but an object here: a list of its members' values, which serde
//! would take as well, is refused. And a number is an integer by its value, as JSON
//! Schema has it: `1.0` and `1e2` are integers.

mod access;
mod number;
mod skip;
mod string;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde_core::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use self::access::{Items, Members, RawText, Whole};
use self::string::Text;

/// The deepest nesting that is read; as serde_json's own limit.
const MAX_DEPTH: u8 = 128;

/// The name by which a `RawValue` of serde_json asks for the text of a value. Any name that
/// Rust could not have is taken for one, should it ever be another.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// Reads `text` as a `T`, without leniency.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Refused> {
    finish(Reader::new(text))
}

/// Reads `text` as a `T`, and as deep as it may be what nobody looks into. The caller has
/// made sure that what has a type does not nest too deeply.
pub(super) fn read_deep<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Refused> {
    finish(Reader::deep(text))
}

fn finish<'de, T: Deserialize<'de>>(mut reader: Reader<'de>) -> Result<T, Refused> {
    // One variable for the result: a message is moved by copying it, and `?` moves it.
    let mut value = T::deserialize(&mut reader);
    reader.blank();
    if reader.at != reader.text.len() {
        value = Err(Refused);
    }
    value
}

/// The text is not JSON, or not of the type, or too unusual for this reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl serde_core::de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }

    fn invalid_type(_: serde_core::de::Unexpected<'_>, _: &dyn serde_core::de::Expected) -> Self {
        Self
    }

    fn invalid_value(_: serde_core::de::Unexpected<'_>, _: &dyn serde_core::de::Expected) -> Self {
        Self
    }

    fn invalid_length(_: usize, _: &dyn serde_core::de::Expected) -> Self {
        Self
    }

    fn missing_field(_: &'static str) -> Self {
        Self
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self
    }
}

/// The value whose whole text is `text`, as serde_json has it. Nobody checks that it is
/// one.
pub(super) fn raw(text: &str) -> Result<&RawValue, Refused> {
    <&RawValue>::deserialize(Whole(BorrowedStrDeserializer::new(text)))
}

/// The same for a text of one's own.
pub(super) fn boxed(text: String) -> Result<Box<RawValue>, Refused> {
    Box::<RawValue>::deserialize(Whole(text.into_deserializer()))
}

/// A text and how far it is read.
pub(super) struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
    /// Whether what is skipped may nest deeper than [`MAX_DEPTH`].
    deep: bool,
}

impl<'de> Reader<'de> {
    pub(super) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            deep: false,
        }
    }

    /// A reader that passes over what is not looked into however deep it nests.
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

    /// The first byte of what comes next, after white space.
    #[inline]
    fn next(&mut self) -> Result<u8, Refused> {
        match self.peek() {
            Some(byte) if byte > b' ' => Ok(byte),
            _ => {
                self.blank();
                self.peek().ok_or(Refused)
            }
        }
    }

    #[cold]
    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes over `byte`, which must come next.
    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Refused> {
        if self.next()? != byte {
            return Err(Refused);
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over `word`, which must come next; what follows it is up to the caller.
    fn word(&mut self, word: &str) -> Result<(), Refused> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(Refused);
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), Refused> {
        if self.depth == MAX_DEPTH {
            return Err(Refused);
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Passes over the bracket that ends `value`, which is refused if there is none.
    #[inline]
    fn leave<T>(&mut self, close: u8, value: &mut Result<T, Refused>) {
        self.depth -= 1;
        if value.is_ok() && self.expect(close).is_err() {
            *value = Err(Refused);
        }
    }

    fn map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        if self.next()? != b'{' {
            return Err(Refused);
        }
        self.enter()?;
        let mut value = visitor.visit_map(Members::new(self));
        self.leave(b'}', &mut value);
        value
    }

    fn seq<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        if self.next()? != b'[' {
            return Err(Refused);
        }
        self.enter()?;
        let mut value = visitor.visit_seq(Items::new(self));
        self.leave(b']', &mut value);
        value
    }

    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        if self.next()? != b'"' {
            return Err(Refused);
        }
        match self.string()? {
            Text::Borrowed(text) => visitor.visit_borrowed_str(text),
            Text::Owned(text) => visitor.visit_string(text),
        }
    }

    fn unit<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        self.next()?;
        self.word("null")?;
        visitor.visit_unit()
    }

    fn boolean<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Refused> {
        let value = self.next()? == b't';
        self.word(if value { "true" } else { "false" })?;
        visitor.visit_bool(value)
    }
}

/// Methods that read one form of JSON, whatever width or shape is asked for.
macro_rules! forward {
    ($($method:ident => $form:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.$form(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Refused;

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
        // A reader of bytes has no form of JSON to hope for.
        deserialize_bytes => unit,
        deserialize_byte_buf => unit,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.next()? {
            b'"' => self.text(visitor),
            b'{' => self.map(visitor),
            b'[' => self.seq(visitor),
            b'n' => self.unit(visitor),
            b't' | b'f' => self.boolean(visitor),
            _ => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
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
    ) -> Result<V::Value, Refused> {
        self.unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if !name.starts_with('$') {
            return visitor.visit_newtype_struct(self);
        }
        self.next()?;
        let start = self.at;
        self.skip()?;
        let text = self.text.get(start..self.at).ok_or(Refused)?;
        visitor.visit_map(RawText::new(name, BorrowedStrDeserializer::new(text)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        self.seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refused> {
        // No generated type is an enum to serde; the second pass reads any other.
        Err(Refused)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.skip()?;
        visitor.visit_unit()
    }
}
