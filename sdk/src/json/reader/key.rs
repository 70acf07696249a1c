//! Deserializes the names of members as map keys: strings, and numbers, booleans and variants
//! in strings.

use serde_core::de::Visitor;
use serde_core::{Deserializer, forward_to_deserialize_any};

use super::string::Text;
use super::variant::NameOnly;
use super::{Reader, StrictError};

/// The name of a member, at its opening quote.
pub(super) struct Key<'r, 'de>(pub(super) &'r mut Reader<'de>);

impl<'de> Key<'_, 'de> {
    /// Reads a number or a boolean from the name.
    fn quoted<V: Visitor<'de>>(
        self,
        visitor: V,
        read: impl FnOnce(&mut Reader<'de>, V) -> Result<V::Value, StrictError>,
        is_one: fn(&[u8]) -> bool,
    ) -> Result<V::Value, StrictError> {
        let start = self.0.at;
        let text = match self.0.string()? {
            Text::Borrowed(text) if is_one(text.as_bytes()) => text,
            _ => {
                self.0.at = start;
                return Err(self.0.mismatch(&visitor));
            }
        };
        let mut reader = Reader::new(text);
        let value = read(&mut reader, visitor)?;
        match reader.at == reader.text.len() {
            true => Ok(value),
            false => Err(StrictError::new("invalid number as the name of a member")),
        }
    }
}

fn is_number(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'-' | b'0'..=b'9'))
}

fn is_boolean(text: &[u8]) -> bool {
    matches!(text, b"true" | b"false")
}

macro_rules! keys {
    ($($method:ident => $form:ident $(if $is_one:ident)?,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
            keys!(@ self visitor $form $($is_one)?)
        })*
    };
    (@ $self:ident $visitor:ident $form:ident) => { $self.0.$form($visitor) };
    (@ $self:ident $visitor:ident $form:ident $is_one:ident) => {
        $self.quoted($visitor, |reader, visitor| reader.$form(visitor), $is_one)
    };
}

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = StrictError;

    keys! {
        deserialize_any => text,
        deserialize_bool => boolean if is_boolean,
        deserialize_i8 => integer if is_number,
        deserialize_i16 => integer if is_number,
        deserialize_i32 => integer if is_number,
        deserialize_i64 => integer if is_number,
        deserialize_i128 => integer if is_number,
        deserialize_u8 => integer if is_number,
        deserialize_u16 => integer if is_number,
        deserialize_u32 => integer if is_number,
        deserialize_u64 => integer if is_number,
        deserialize_u128 => integer if is_number,
        deserialize_f32 => float if is_number,
        deserialize_f64 => float if is_number,
        deserialize_bytes => bytes,
        deserialize_byte_buf => bytes,
    }

    // A name is a string, whatever type is requested.
    forward_to_deserialize_any! {
        char str string identifier unit unit_struct seq tuple tuple_struct map struct
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
        self.0.skip_string()?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, StrictError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        visitor.visit_enum(NameOnly(self.0))
    }
}
