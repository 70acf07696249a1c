//! Any JSON value, kept as text.

use std::any::type_name;
use std::fmt;

use serde_core::de::DeserializeOwned;
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::reader::RawJson;
use super::writer::{Writer, encode_raw};

/// Any JSON value, kept as text.
///
/// Numbers of any size, the order of members and nesting of any depth survive a round trip
/// through JSON text. Two values are equal when their texts are. Where serde buffers a value
/// (`flatten`, `untagged`, internally tagged enums), it is what a [`Value`] is: numbers of at most
/// 64 bits, members in that type's order, nesting of at most 128 levels.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Returns the JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the value as borrowed raw JSON.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Creates the JSON form of a value.
    ///
    /// # Errors
    /// Fails when `value` has no JSON form, such as a map whose keys are not strings.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        match encode_raw(&value) {
            Ok(raw) => Ok(Self(raw)),
            Err(error) => Err(serde_core::ser::Error::custom(error)),
        }
    }

    /// Reads the value strictly as a `T`.
    ///
    /// # Errors
    /// Fails when the value is not a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Returns the value as a tree; `None` when it nests more than 128 levels deep.
    #[must_use]
    pub fn to_value(&self) -> Option<Value> {
        self.parse().ok()
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // A `Value` always has a JSON form, so the fallback is never taken.
        Self::new(value).unwrap_or_else(|_| Self(RawValue::NULL.to_owned()))
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_raw(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(raw) = RawJson::deserialize(deserializer)?;
        Ok(Self(raw))
    }
}

/// Returns the value of a text in generated code, which is valid JSON.
#[must_use]
pub fn json_literal(text: &str) -> Json {
    Json::from(serde_json::from_str::<Value>(text).unwrap_or_default())
}

/// Writes `raw` verbatim as JSON text, or as a [`Value`] to serde's buffers.
pub(super) fn write_raw<S: Serializer>(raw: &RawValue, serializer: S) -> Result<S::Ok, S::Error> {
    match takes_text::<S>() {
        true => raw.serialize(serializer),
        false => serde_json::from_str::<Value>(raw.get())
            .map_err(serde_core::ser::Error::custom)?
            .serialize(serializer),
    }
}

/// Returns whether `S` writes a `RawValue` verbatim: the writer of this crate, or a serializer
/// of serde_json.
///
/// Serializers have type parameters and are not `'static`, so they are recognized by their type
/// names. A serializer that wraps one of serde_json is not recognized; it gets a [`Value`].
#[inline]
pub(super) fn takes_text<S>() -> bool {
    let name = type_name::<S>();
    name == type_name::<Writer<'_>>() || is_of_serde_json(name)
}

fn is_of_serde_json(name: &str) -> bool {
    let generic = |name: &'static str| name.split_once('<').map_or(name, |(name, _)| name);
    let name = name.split_once('<').map_or(name, |(name, _)| name);
    name == generic(type_name::<&mut serde_json::Serializer<Vec<u8>>>())
        || name == generic(type_name::<serde_json::value::Serializer>())
}
