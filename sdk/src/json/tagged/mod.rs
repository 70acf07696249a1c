//! Unions told apart by a tag among their members.
//!
//! When the tag comes first, as most peers write it, the payload is read straight
//! from the rest of the object. Otherwise the members are kept unparsed until all
//! are there. A tag nobody knows keeps its whole object.

mod stream;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

pub use self::stream::tagged;
use super::decode::Member;
use super::{DecodeError, FromObject, Json, Object};

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

    /// Reads the variant that has no tag.
    ///
    /// # Errors
    /// When there is none, or the members are not those of it.
    fn untagged(object: &mut Object<'_>) -> Result<Self, DecodeError> {
        Err(object.missing(Self::TAG))
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
    fn payload<P: FromObject + DeserializeOwned>(self) -> Result<P, Self::Error>;

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
    fn payload_or_unknown<P: FromObject + DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, Self::Error>;
}

/// Reads a tagged union from the members of an object.
///
/// # Errors
/// When they are not those of a `T`.
pub fn tagged_object<T: Tagged>(object: &mut Object<'_>) -> Result<T, DecodeError> {
    match object.tag(T::TAG) {
        Ok(Some(tag)) => T::read(
            &tag,
            Found {
                object,
                tag: T::TAG,
            },
        ),
        Ok(None) => T::untagged(object),
        // A variant without a tag may have a member of that name, of any form.
        Err(error) => {
            let strict = object.cx.strict;
            object.attempt(strict, T::untagged).map_err(|_| error)
        }
    }
}

/// An object whose tag is known and still among its members.
struct Found<'o, 'a> {
    object: &'o mut Object<'a>,
    tag: &'static str,
}

impl Branch for Found<'_, '_> {
    type Error = DecodeError;

    fn payload<P: FromObject + DeserializeOwned>(self) -> Result<P, DecodeError> {
        // The tag is no member of the payload, nor of a union in it.
        self.object.skip(self.tag);
        P::from_object(self.object)
    }

    fn unit(self) -> Result<(), DecodeError> {
        Ok(())
    }

    fn unknown(self, tag: &str) -> Result<UnknownVariant, DecodeError> {
        Ok(self.object.rest(tag))
    }

    fn payload_or_unknown<P: FromObject + DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, DecodeError> {
        let payload = self.object.first_of("", &[(&[], P::from_object)]);
        Ok(payload.map_or_else(|_| unknown(self.object.rest(tag)), known))
    }
}

/// Implements the decoding traits of a union by its [`Tagged`].
#[doc(hidden)]
#[macro_export]
macro_rules! __acp_tagged_union {
    ($name:ident) => {
        impl $crate::runtime::FromObject for $name {
            fn from_object(
                object: &mut $crate::runtime::Object<'_>,
            ) -> ::core::result::Result<Self, $crate::runtime::DecodeError> {
                $crate::runtime::tagged_object(object)
            }
        }

        $crate::__acp_deserialize_with!($name, $crate::runtime::tagged);
    };
}
