//! Unions told apart by a tag among their members.
//!
//! When the tag comes first, as most peers write it, the payload is read straight
//! from the rest of the object. Otherwise the members are kept unparsed until all
//! are there. A tag nobody knows keeps its whole object.

mod stream;
#[cfg(test)]
mod tests;
mod write;

use serde_core::de::DeserializeOwned;
use serde_core::{Serialize, Serializer};

pub use self::stream::tagged;
pub use self::write::{VariantWriter, write_tagged, write_tagged_members};
use super::Json;
use super::decode::{Kept, Member};

/// A variant of a later protocol, or of an extension, as it came.
///
/// It serialises to the same members in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariant {
    tag: String,
    fields: Vec<(String, Json)>,
}

impl UnknownVariant {
    /// A variant with the given tag value and all members, the tag among them.
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

    /// The value of the tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// All members in order, the tag among them.
    #[must_use]
    pub fn fields(&self) -> &[(String, Json)] {
        &self.fields
    }

    /// The member `name`.
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

/// A union whose variants are told apart by a tag; generated code implements it.
pub trait Tagged: Sized {
    /// The name of the member that is the tag.
    const TAG: &'static str;

    /// Reads the variant that `tag` names.
    ///
    /// # Errors
    /// When the members are not those of the variant.
    fn read<B: Branch>(tag: &str, branch: B) -> Result<Self, B::Error>;

    /// Writes whichever variant it is.
    ///
    /// # Errors
    /// When the output fails.
    fn write_variant<W: VariantWriter>(&self, to: W) -> Result<W::Ok, W::Error>;

    /// Reads the variant that has no tag, if there is one and the members are those of it.
    fn untagged(_: &Kept<'_>) -> Option<Self> {
        None
    }
}

/// The members of a union's object, to be read as one of its variants.
pub trait Branch: Sized {
    /// The error of the input.
    type Error;

    /// Reads the members as a `P`.
    ///
    /// # Errors
    /// When they are not those of a `P`.
    fn payload<P: DeserializeOwned>(self) -> Result<P, Self::Error>;

    /// Passes over the members.
    ///
    /// # Errors
    /// When the input is broken.
    fn unit(self) -> Result<(), Self::Error>;

    /// Keeps the members as they are.
    ///
    /// # Errors
    /// When the input is broken.
    fn unknown(self, tag: &str) -> Result<UnknownVariant, Self::Error>;

    /// Reads the members as a `P` if they are one, and keeps them otherwise.
    ///
    /// # Errors
    /// When the input is broken.
    fn payload_or_unknown<P: DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, Self::Error>;
}
