//! The `_meta` object, which the protocol reserves for extensions.

use std::fmt;
use std::ops::Range;

use serde_core::de::{DeserializeOwned, Error as _};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::encode_raw;
use super::reader::RawJson;
use super::value::write_raw;

/// A JSON object of free content, kept as text and parsed on access.
///
/// ```
/// # use acp_sdk::Meta;
/// let mut meta = Meta::new();
/// meta.insert("example.com/trace", &"4bf92f35").unwrap();
/// assert_eq!(meta.get::<String>("example.com/trace").as_deref(), Some("4bf92f35"));
/// ```
#[derive(Clone)]
pub struct Meta(Box<RawValue>);

impl Meta {
    /// Creates an empty object.
    #[must_use]
    pub fn new() -> Self {
        Self::from(Map::new())
    }

    /// Creates the object from its text.
    pub(super) fn from_raw(raw: Box<RawValue>) -> Self {
        Self(raw)
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the member `key` as a `T`; `None` when it is absent or of another type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let mut members: Members<'_> = serde_json::from_str(self.as_str()).ok()?;
        serde_json::from_str(members.remove(key)?.get()).ok()
    }

    /// Returns whether the object has a member `key`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        serde_json::from_str::<Members<'_>>(self.as_str()).is_ok_and(|m| m.contains_key(key))
    }

    /// Sets the member `key`. The other members keep their text and their order.
    ///
    /// # Errors
    /// Fails when `value` has no JSON form; the object is then unchanged.
    pub fn insert<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), serde_json::Error> {
        let value = serde_json::value::to_raw_value(value)?;
        let text = self.as_str();
        let spliced = match self.value_range(key) {
            Some(range) => [&text[..range.start], value.get(), &text[range.end..]].concat(),
            None => {
                let members = text.strip_suffix('}').unwrap_or(text).trim_ascii_end();
                let comma = if members == "{" { "" } else { "," };
                let key = serde_json::to_string(key)?;
                [members, comma, &key, ":", value.get(), "}"].concat()
            }
        };
        self.0 = RawValue::from_string(spliced)?;
        Ok(())
    }

    /// Returns where in the text the value of the member `key` is; of several, the last.
    fn value_range(&self, key: &str) -> Option<Range<usize>> {
        let text = self.as_str();
        let members: Members<'_> = serde_json::from_str(text).ok()?;
        let value = members.get(key)?.get();
        // It is borrowed from the text.
        let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        Some(start..start + value.len())
    }

    /// Sets the member `key`; ignores a value without a JSON form.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        // Fails only for a value that JSON cannot express.
        let _ = self.insert(key, value);
        self
    }

    /// Returns all members as a tree; empty when they nest more than 128 levels deep, or have a
    /// number beyond the range of `f64`.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

/// The unparsed members by name.
type Members<'a> = std::collections::HashMap<String, &'a RawValue>;

impl Default for Meta {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Meta {}

impl fmt::Debug for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(map: Map<String, Value>) -> Self {
        // A map of `Value`s always has a JSON form, so the fallback is never taken.
        Self(encode_raw(&map).unwrap_or_default())
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_raw(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawJson(raw) = RawJson::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            Ok(Self(raw))
        } else {
            Err(D::Error::custom("invalid type: expected an object"))
        }
    }
}
