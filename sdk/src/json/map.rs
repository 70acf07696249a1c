//! A JSON object as a map that keeps the order of its members.

use std::fmt;

use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use super::decode::deserialize;
use super::described::Described;

/// A JSON object with members of one type, in the order of the document.
///
/// The order can be meaningful, such as for the fields of a form. Lookup is linear; these
/// objects have few members.
#[derive(Clone, PartialEq, Eq)]
pub struct Map<V>(Vec<(String, V)>);

impl<V> Map<V> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Creates a map from members with distinct names.
    #[cfg(feature = "v2")]
    pub(crate) const fn from_distinct(members: Vec<(String, V)>) -> Self {
        Self(members)
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of the member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.iter()
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Sets the member `name` and returns its previous value.
    ///
    /// An existing member keeps its position.
    pub fn insert(&mut self, name: impl Into<String>, value: V) -> Option<V> {
        let name = name.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V> FromIterator<(K, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut map = Self::new();
        for (name, value) in members {
            map.insert(name, value);
        }
        map
    }
}

impl<K: Into<String>, V, const N: usize> From<[(K, V); N]> for Map<V> {
    fn from(members: [(K, V); N]) -> Self {
        members.into_iter().collect()
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: Serialize> Serialize for Map<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Described> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer)
    }
}

impl<V> Map<V> {
    /// Creates a map from members; of those with equal names the last counts.
    pub(super) fn keep_last(mut members: Vec<(String, V)>) -> Self {
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        let keep: Vec<bool> = members
            .iter()
            .rev()
            .map(|(name, _)| seen.insert(name.clone()))
            .collect();
        let mut keep = keep.into_iter().rev();
        members.retain(|_| keep.next().unwrap_or(true));
        Self(members)
    }
}
