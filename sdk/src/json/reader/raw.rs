//! JSON text as a `RawValue`, and the text of what another deserializer reads.

use std::borrow::Cow;
use std::fmt;

use serde_core::de::value::{
    BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, SeqAccessDeserializer,
};
use serde_core::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_core::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::Value;
use serde_json::value::RawValue;

/// Turns `text`, which must be valid JSON, into a raw value.
pub(in crate::json) fn raw(text: &str) -> &RawValue {
    <&RawValue>::deserialize(Verbatim(BorrowedStrDeserializer::new(text))).unwrap_or(RawValue::NULL)
}

/// Turns an owned text, which must be valid JSON, into a raw value without a copy.
pub(in crate::json) fn boxed(text: String) -> Box<RawValue> {
    Box::<RawValue>::deserialize(Verbatim(text)).unwrap_or_default()
}

/// Passes a text to the visitor of `RawValue`, as a reader of serde_json does.
struct Verbatim<T>(T);

impl<'de, T: IntoDeserializer<'de, serde_json::Error>> Deserializer<'de> for Verbatim<T> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> serde_json::Result<V::Value> {
        Err(Error::custom("not a raw value"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, self.0))))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The JSON text of a value.
///
/// It is what the input has, where that is JSON text. From other deserializers, such as serde's
/// buffers of flattened and untagged types, it is made by way of a [`Value`].
pub(in crate::json) struct RawJson(pub(in crate::json) Box<RawValue>);

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(Intercept(deserializer)).map(Self)
    }
}

/// A deserializer that has something for the visitor of `RawValue`, whatever its input is.
struct Intercept<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Intercept<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let text = self.0.deserialize_newtype_struct(name, TextOf(name))?;
        let text = std::iter::once((name, text.into_owned()));
        visitor.visit_map(MapDeserializer::new(text))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Visitor that returns JSON text; a member of this name is that text.
struct TextOf(&'static str);

fn text_of<'de, E: Error>(value: impl Deserializer<'de, Error = E>) -> Result<Cow<'de, str>, E> {
    Value::deserialize(value).map(|value| value.to_string().into())
}

/// Visitor methods for scalars of serde's data model.
macro_rules! scalars {
    ($($visit:ident($type:ty),)*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            text_of(value.into_deserializer())
        })*
    };
}

impl<'de> Visitor<'de> for TextOf {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    scalars! {
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str),
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok("null".into())
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        text_of(value)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        text_of(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        text_of(SeqAccessDeserializer::new(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some(name) = map.next_key::<String>()? else {
            return Ok("{}".into());
        };
        if name == self.0 {
            return map.next_value::<String>().map(Cow::Owned);
        }
        let mut members = serde_json::Map::from_iter([(name, map.next_value()?)]);
        members.extend(serde_json::Map::deserialize(MapAccessDeserializer::new(
            map,
        ))?);
        Ok(Value::Object(members).to_string().into())
    }
}
