//! Unions of objects with a tag member.
//!
//! When the tag comes first, as most peers write it, the payload is streamed from the rest of
//! the object. Otherwise the members are buffered unparsed. A variant with an unknown tag keeps
//! all members.

mod stream;
#[cfg(test)]
mod tests;
mod write;

use serde_core::de::DeserializeOwned;
use serde_core::{Serialize, Serializer};

pub use self::stream::read_tagged_union;
pub use self::write::{VariantWriter, write_tagged, write_tagged_members};
use super::Json;
use super::decode::{BufferedFields, Member};

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

    pub(crate) fn from_members<'a>(
        tag: &str,
        members: impl Iterator<Item = &'a Member<'a>>,
    ) -> Self {
        let field = |member: &Member<'_>| (member.name.to_string(), Json::from(&*member.raw));
        Self::new(tag, members.map(field).collect())
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
    fn read<B: VariantReader>(tag: &str, branch: B) -> Result<Self, B::Error>;

    /// Writes the variant.
    ///
    /// # Errors
    /// Fails when the output does.
    fn write_variant<W: VariantWriter>(&self, to: W) -> Result<W::Ok, W::Error>;

    /// Reads the variant without a tag, if the union has one and the members fit.
    fn untagged(_: &BufferedFields<'_>) -> Option<Self> {
        None
    }
}

/// Reads the members of a union's object as one of its variants.
pub trait VariantReader: Sized {
    /// Error of the input.
    type Error;

    /// Reads the members as a `P`.
    ///
    /// # Errors
    /// Fails when they are invalid for `P`.
    fn payload<P: DeserializeOwned>(self) -> Result<P, Self::Error>;

    /// Skips the members.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    fn unit(self) -> Result<(), Self::Error>;

    /// Returns the members as an unknown variant.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    fn unknown(self, tag: &str) -> Result<UnknownVariant, Self::Error>;

    /// Reads the members as a `P`, or as an unknown variant when they do not fit.
    ///
    /// # Errors
    /// Fails when the input is invalid.
    fn payload_or_unknown<P: DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, Self::Error>;
}
