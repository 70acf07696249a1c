//! Serializes tagged unions.

use serde_core::{Serialize, Serializer};

use super::{TaggedUnion, UnknownVariant};
use crate::json::object::{MemberWriter, Members, write_object};

/// Writes one variant of a tagged union.
pub trait VariantWriter: Sized {
    /// Result of writing.
    type Ok;
    /// Error of the output.
    type Error;

    /// Writes the tag and a payload.
    ///
    /// # Errors
    /// Fails when the output does.
    fn payload<P: Members>(self, tag: &'static str, payload: &P) -> Result<Self::Ok, Self::Error>;

    /// Writes the tag alone.
    ///
    /// # Errors
    /// Fails when the output does.
    fn unit(self, tag: &'static str) -> Result<Self::Ok, Self::Error> {
        self.payload(tag, &())
    }

    /// Writes a payload without a tag.
    ///
    /// # Errors
    /// Fails when the output does.
    fn untagged<P: Members + Serialize>(self, payload: &P) -> Result<Self::Ok, Self::Error>;

    /// Writes an unknown variant.
    ///
    /// # Errors
    /// Fails when the output does.
    fn unknown(self, variant: &UnknownVariant) -> Result<Self::Ok, Self::Error>;
}

/// Serializes a tagged union.
///
/// # Errors
/// Fails when the serializer does.
#[inline]
pub fn write_tagged<T: TaggedUnion, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.write_variant(OwnObject {
        tag: T::TAG,
        serializer,
    })
}

/// Writes the members of a tagged union into another object.
///
/// # Errors
/// Fails when the output does.
#[inline]
pub fn write_tagged_members<T: TaggedUnion, W: MemberWriter>(
    value: &T,
    out: &mut W,
) -> Result<(), W::Error> {
    value.write_variant(InsideObject { tag: T::TAG, out })
}

/// Writes a variant as an object of its own.
struct OwnObject<S> {
    tag: &'static str,
    serializer: S,
}

impl<S: Serializer> VariantWriter for OwnObject<S> {
    type Ok = S::Ok;
    type Error = S::Error;

    #[inline]
    fn payload<P: Members>(self, tag: &'static str, payload: &P) -> Result<S::Ok, S::Error> {
        let variant = Variant {
            tag: (self.tag, tag),
            payload,
        };
        write_object(&variant, "", self.serializer)
    }

    fn untagged<P: Members + Serialize>(self, payload: &P) -> Result<S::Ok, S::Error> {
        payload.serialize(self.serializer)
    }

    fn unknown(self, variant: &UnknownVariant) -> Result<S::Ok, S::Error> {
        variant.serialize(self.serializer)
    }
}

/// Writes the members of a variant into another object.
struct InsideObject<'a, W> {
    tag: &'static str,
    out: &'a mut W,
}

impl<W: MemberWriter> VariantWriter for InsideObject<'_, W> {
    type Ok = ();
    type Error = W::Error;

    #[inline]
    fn payload<P: Members>(self, tag: &'static str, payload: &P) -> Result<(), W::Error> {
        self.out.member(self.tag, tag)?;
        payload.write(self.out)
    }

    fn untagged<P: Members + Serialize>(self, payload: &P) -> Result<(), W::Error> {
        payload.write(self.out)
    }

    fn unknown(self, variant: &UnknownVariant) -> Result<(), W::Error> {
        variant.write(self.out)
    }
}

/// A payload preceded by the tag.
struct Variant<'a, P> {
    tag: (&'static str, &'static str),
    payload: &'a P,
}

impl<P: Members> Members for Variant<'_, P> {
    #[inline]
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error> {
        out.member(self.tag.0, self.tag.1)?;
        self.payload.write(out)
    }
}
