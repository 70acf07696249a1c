//! Unions of objects with a tag member.
//!
//! When the tag comes first, as most peers write it, the payload is read from the rest of the
//! object. Otherwise the members are read again from the start. A variant with an unknown tag
//! keeps all members.

mod read;
#[cfg(test)]
mod tests;

use serde_core::{Serialize, Serializer};

pub use self::read::{VariantReader, read_tagged_union};
use super::Json;
use super::reader::StrictError;

/// A variant with an unknown tag, from a later protocol or an extension.
///
/// Serializes to the same members in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariant {
    tag: String,
    fields: Vec<(String, Json)>,
}

impl UnknownVariant {
    /// Creates a variant from the tag value and all members, including the tag.
    #[must_use]
    pub fn new(tag: impl Into<String>, fields: Vec<(String, Json)>) -> Self {
        Self {
            tag: tag.into(),
            fields,
        }
    }

    /// Returns the value of the tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns all members in order, including the tag.
    #[must_use]
    pub fn fields(&self) -> &[(String, Json)] {
        &self.fields
    }

    /// Returns the member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.fields
            .iter()
            .rev()
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

impl Serialize for UnknownVariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

/// A union of objects with a tag. Generated code implements it.
pub trait TaggedUnion: Sized {
    /// Name of the tag member.
    const TAG: &'static str;

    /// Reads the variant of the given tag.
    ///
    /// # Errors
    /// Fails when the members are invalid for the variant.
    fn read(tag: &str, variant: VariantReader<'_, '_>) -> Result<Self, StrictError>;

    /// Reads the variant without a tag, if the union has one.
    ///
    /// # Errors
    /// Fails when the members are invalid for the variant.
    fn read_untagged(_: VariantReader<'_, '_>) -> Result<Self, StrictError> {
        Err(StrictError::INVALID)
    }
}
