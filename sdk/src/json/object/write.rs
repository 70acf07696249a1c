//! Writes objects member by member, alone or merged into another object.

use serde_core::ser::SerializeMap;
use serde_core::{Serialize, Serializer};

use crate::json::{Map, Patch, UnknownVariant};

/// A type whose JSON form is an object; generated code implements it.
pub trait Members {
    /// Writes the members.
    ///
    /// # Errors
    /// Fails when the output does.
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error>;
}

impl Members for () {
    fn write<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<T: Members> Members for Box<T> {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        (**self).write(out)
    }
}

impl<T: Members> Members for Option<T> {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => value.write(out),
            None => Ok(()),
        }
    }
}

impl<V: Serialize> Members for Map<V> {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        let mut entries = self.iter();
        entries.try_for_each(|(name, value)| out.serialize_entry(name, value))
    }
}

impl Members for UnknownVariant {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        let mut fields = self.fields().iter();
        fields.try_for_each(|(name, value)| out.serialize_entry(name, value))
    }
}

/// Serializes an object.
///
/// # Errors
/// Fails when the serializer does.
#[inline]
pub fn write_object<T: Members, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    // JSON needs no count of the members.
    let mut map = serializer.serialize_map(None)?;
    value.write(&mut map)?;
    map.end()
}

/// Writes a member.
///
/// # Errors
/// Fails when the output does.
#[inline]
pub fn write_member<T: Serialize + ?Sized, M: SerializeMap>(
    out: &mut M,
    name: &'static str,
    value: &T,
) -> Result<(), M::Error> {
    out.serialize_entry(name, value)
}

/// Writes a member unless it is omitted.
///
/// # Errors
/// Fails when the output does.
#[inline]
pub fn write_optional<T: Serialize + Omissible, M: SerializeMap>(
    out: &mut M,
    name: &'static str,
    value: &T,
) -> Result<(), M::Error> {
    match value.is_omitted() {
        true => Ok(()),
        false => out.serialize_entry(name, value),
    }
}

/// Writes a variant of a tagged union: the tag, then the members of the payload.
///
/// # Errors
/// Fails when the output does.
#[inline]
pub fn write_variant<P: Members, M: SerializeMap>(
    out: &mut M,
    [name, tag]: [&'static str; 2],
    payload: &P,
) -> Result<(), M::Error> {
    out.serialize_entry(name, tag)?;
    payload.write(out)
}

/// A value that is omitted from its object when it is empty.
pub trait Omissible {
    /// Whether the member is omitted.
    fn is_omitted(&self) -> bool;
}

impl<T> Omissible for Option<T> {
    #[inline]
    fn is_omitted(&self) -> bool {
        self.is_none()
    }
}

impl<T> Omissible for Patch<T> {
    #[inline]
    fn is_omitted(&self) -> bool {
        self.is_absent()
    }
}

impl<T> Omissible for Vec<T> {
    #[inline]
    fn is_omitted(&self) -> bool {
        self.is_empty()
    }
}

impl<V> Omissible for Map<V> {
    #[inline]
    fn is_omitted(&self) -> bool {
        self.is_empty()
    }
}
