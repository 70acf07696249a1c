//! `MapAccess` of objects and `SeqAccess` of lists.

use serde_core::de::value::BorrowedStrDeserializer;
use serde_core::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_core::{Deserializer, forward_to_deserialize_any};

use super::key::Key;
use super::{Reader, StrictError};

/// The members of an object after its opening brace.
pub(super) struct Members<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl<'r, 'de> Members<'r, 'de> {
    pub(super) fn new(reader: &'r mut Reader<'de>) -> Self {
        Self {
            reader,
            first: true,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = StrictError;

    /// Always inlined: without, every member costs a call that saves and restores registers.
    #[inline(always)]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, StrictError> {
        if !self.reader.more(b'}', &mut self.first)? {
            return Ok(None);
        }
        // An ignored key would accept any value.
        if self.reader.next()? != b'"' {
            return Err(StrictError::SYNTAX);
        }
        seed.deserialize(Key(&mut *self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, StrictError> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The items of a list after its opening bracket.
pub(super) struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl<'r, 'de> Items<'r, 'de> {
    pub(super) fn new(reader: &'r mut Reader<'de>) -> Self {
        Self {
            reader,
            first: true,
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = StrictError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, StrictError> {
        if !self.reader.more(b']', &mut self.first)? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl Reader<'_> {
    /// Returns whether another member or item comes before `close`; consumes the comma.
    #[inline]
    pub(super) fn more(&mut self, close: u8, first: &mut bool) -> Result<bool, StrictError> {
        let next = self.next()?;
        if next == close {
            self.closed = self.at;
            return Ok(false);
        }
        if std::mem::take(first) {
            return Ok(true);
        }
        if next != b',' {
            return Err(StrictError::SYNTAX);
        }
        self.at += 1;
        // The next read fails on a second comma and on the closing bracket.
        Ok(true)
    }
}

/// The text of a value as the one-member object that serde_json's `RawValue` expects.
pub(super) struct RawText<T> {
    name: &'static str,
    text: Option<T>,
}

impl<T> RawText<T> {
    pub(super) fn new(name: &'static str, text: T) -> Self {
        Self {
            name,
            text: Some(text),
        }
    }
}

impl<'de, T: Deserializer<'de, Error = StrictError>> MapAccess<'de> for RawText<T> {
    type Error = StrictError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, StrictError> {
        match self.text {
            Some(_) => {
                let name = BorrowedStrDeserializer::new(self.name);
                seed.deserialize(name).map(Some)
            }
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, StrictError> {
        seed.deserialize(self.text.take().ok_or(StrictError::SYNTAX)?)
    }
}

/// A deserializer that only passes a text to `RawValue`.
pub(super) struct Whole<T>(pub(super) T);

impl<'de, T: Deserializer<'de, Error = StrictError>> Deserializer<'de> for Whole<T> {
    type Error = StrictError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, StrictError> {
        Err(StrictError::SYNTAX)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, StrictError> {
        visitor.visit_map(RawText::new(name, self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
