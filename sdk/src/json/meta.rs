//! The `_meta` object: data that the protocol reserves for its users.

use std::fmt;

use serde_core::de::{DeserializeOwned, Error as _};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::decode::AnyRaw;
use super::encode_raw;
use super::value::write_raw;

/// A JSON object of free content, parsed only when somebody looks into it.
///
/// ```
/// # use acp_sdk::runtime::Meta;
/// let mut meta = Meta::new();
/// meta.insert("example.com/trace", &"4bf92f35").unwrap();
/// assert_eq!(meta.get::<String>("example.com/trace").as_deref(), Some("4bf92f35"));
/// ```
#[derive(Clone)]
pub struct Meta(Box<RawValue>);

impl Meta {
    /// An empty object.
    #[must_use]
    pub fn new() -> Self {
        Self::from(Map::new())
    }

    /// The object's JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The member `key` as a `T`; `None` when it is absent or of another form.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let mut members: Members<'_> = serde_json::from_str(self.as_str()).ok()?;
        serde_json::from_str(members.remove(key)?.get()).ok()
    }

    /// Whether the object has a member `key`.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        serde_json::from_str::<Members<'_>>(self.as_str()).is_ok_and(|m| m.contains_key(key))
    }

    /// Sets the member `key`.
    ///
    /// # Errors
    /// When `value` has no JSON form; the object is unchanged then.
    pub fn insert<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), serde_json::Error> {
        let value = serde_json::to_value(value)?;
        let mut map = self.to_map();
        map.insert(key.to_owned(), value);
        *self = Self::from(map);
        Ok(())
    }

    /// The object with the member `key` set; a value without a JSON form is left out.
    #[must_use]
    pub fn with<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        // The one way to fail is a value that JSON cannot express.
        let _ = self.insert(key, value);
        self
    }

    /// All members as a tree; empty when they nest deeper than a tree can be built.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

/// The members by name, their values unparsed.
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
        let AnyRaw(raw) = AnyRaw::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            Ok(Self(raw.into_owned()))
        } else {
            Err(D::Error::custom("invalid type: expected an object"))
        }
    }
}
