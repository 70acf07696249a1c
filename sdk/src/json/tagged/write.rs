//! The writer of tagged unions.

use serde_core::{Serialize, Serializer};

use super::{Tagged, UnknownVariant};
use crate::json::object::{MemberWriter, Members, write_object};

/// What a variant of a tagged union is written to.
pub trait VariantWriter: Sized {
    /// What has been written.
    type Ok;
    /// The error of the output.
    type Error;

    /// Writes the tag and a payload.
    ///
    /// # Errors
    /// When the output fails.
    fn payload<P: Members>(self, tag: &'static str, payload: &P) -> Result<Self::Ok, Self::Error>;

    /// Writes the tag alone.
    ///
    /// # Errors
    /// When the output fails.
    fn unit(self, tag: &'static str) -> Result<Self::Ok, Self::Error> {
        self.payload(tag, &())
    }

    /// Writes a payload that has no tag.
    ///
    /// # Errors
    /// When the output fails.
    fn untagged<P: Members + Serialize>(self, payload: &P) -> Result<Self::Ok, Self::Error>;

    /// Writes a variant that nobody knows.
    ///
    /// # Errors
    /// When the output fails.
    fn unknown(self, variant: &UnknownVariant) -> Result<Self::Ok, Self::Error>;
}

/// `Serialize` for a tagged union.
///
/// # Errors
/// When the serializer fails.
#[inline]
pub fn write_tagged<T: Tagged, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.write_variant(Alone {
        tag: T::TAG,
        serializer,
    })
}

/// The members of a tagged union, among those of another object.
///
/// # Errors
/// When the output fails.
#[inline]
pub fn write_tagged_members<T: Tagged, W: MemberWriter>(
    value: &T,
    out: &mut W,
) -> Result<(), W::Error> {
    value.write_variant(Among { tag: T::TAG, out })
}

/// A variant that is an object of its own.
struct Alone<S> {
    tag: &'static str,
    serializer: S,
}

impl<S: Serializer> VariantWriter for Alone<S> {
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

/// A variant whose members stand among those of another object.
struct Among<'a, W> {
    tag: &'static str,
    out: &'a mut W,
}

impl<W: MemberWriter> VariantWriter for Among<'_, W> {
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
        self.out.unknown(variant)
    }
}

/// A payload with the tag before it.
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
