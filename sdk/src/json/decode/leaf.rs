//! Reading of what the types are made of: scalars, lists, maps, options.

use serde::Deserializer;
use serde::de::{DeserializeOwned, Visitor};
use serde_json::value::RawValue;

use super::object::kind;
use super::{Decode, DecodeError, FromJson, FromObject, Object, Step};
use crate::json::{Json, Map, Meta, Patch, reader};

/// Reads a value that serde reads in one piece.
///
/// # Errors
/// When `raw` is not a `T`.
pub fn value_of<T: DeserializeOwned>(raw: &RawValue, cx: &mut Decode) -> Result<T, DecodeError> {
    // serde_json comes second, for it has words for what is wrong.
    reader::read(raw.get())
        .or_else(|_| serde_json::from_str(raw.get()).map_err(|error| cx.invalid(&error)))
}

macro_rules! values {
    ($($type:ty),*) => {
        $(impl FromJson for $type {
            fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
                value_of(raw, cx)
            }
        })*
    };
}

values!(
    (),
    bool,
    String,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    i128,
    u8,
    u16,
    u32,
    u64,
    u128,
    Json,
    Meta,
    serde_json::Value
);

impl<T: FromObject> FromObject for Box<T> {
    fn from_object(object: &mut Object<'_>) -> Result<Self, DecodeError> {
        T::from_object(object).map(Self::new)
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        if raw.get() == "null" {
            Ok(None)
        } else {
            T::from_json(raw, cx).map(Some)
        }
    }
}

impl<T: FromJson> FromJson for Patch<T> {
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        Option::from_json(raw, cx).map(|value| value.map_or(Self::Null, Self::Value))
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        let items = items(raw, cx)?;
        let item = |(index, raw): (usize, &&RawValue)| {
            cx.at(Step::Item(index), |cx| T::from_json(raw, cx))
        };
        items.iter().enumerate().map(item).collect()
    }
}

impl<T: FromJson> FromJson for Map<T> {
    fn from_json(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        if !raw.get().starts_with('{') {
            return Err(cx.error(format!("invalid type: {}, expected an object", kind(raw))));
        }
        let raw: Map<Box<RawValue>> = value_of(raw, cx)?;
        let member = |(name, raw): (String, Box<RawValue>)| {
            let value = cx.at(Step::Key(name.clone()), |cx| T::from_json(&raw, cx))?;
            Ok((name, value))
        };
        raw.into_iter()
            .map(member)
            .collect::<Result<_, _>>()
            .map(Self::from_unique)
    }
}

/// A list that can be read without its invalid items.
pub trait Items: Sized {
    /// Reads the valid items of `raw`; the others are reported.
    ///
    /// # Errors
    /// When `raw` is not a list, or when an item is invalid and leniency is off.
    fn valid_items(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError>;
}

impl<T: FromJson> Items for Vec<T> {
    fn valid_items(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        let raw = items(raw, cx)?;
        let mut valid = Self::with_capacity(raw.len());
        for (index, raw) in raw.into_iter().enumerate() {
            let item = cx.at(Step::Item(index), |cx| {
                let strict = cx.strict;
                match cx.attempt(strict, |cx| T::from_json(raw, cx)) {
                    Ok(item) => Ok(Some(item)),
                    Err(error) => cx.drop_value(None, error),
                }
            })?;
            valid.extend(item);
        }
        Ok(valid)
    }
}

impl<T: Items> Items for Option<T> {
    fn valid_items(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        if raw.get() == "null" {
            Ok(None)
        } else {
            T::valid_items(raw, cx).map(Some)
        }
    }
}

impl<T: Items> Items for Patch<T> {
    fn valid_items(raw: &RawValue, cx: &mut Decode) -> Result<Self, DecodeError> {
        Option::valid_items(raw, cx).map(|value| value.map_or(Self::Null, Self::Value))
    }
}

fn items<'a>(raw: &'a RawValue, cx: &mut Decode) -> Result<Vec<&'a RawValue>, DecodeError> {
    raw.deserialize_seq(ItemsVisitor)
        .map_err(|error| cx.invalid(&error))
}

/// Collects the items of a list, unparsed.
struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}
