//! Writes objects member by member, alone or merged into another object.

use std::convert::Infallible;

use serde_core::ser::{SerializeMap, SerializeStruct};
use serde_core::{Serialize, Serializer};

use crate::json::value::takes_text;
use crate::json::{Map, Patch, UnknownVariant};

/// A type whose JSON form is an object; generated code implements it.
pub trait Members {
    /// Writes the members.
    ///
    /// # Errors
    /// Fails as [`MemberWriter::member`] does.
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error>;
}

/// An object that is being written.
pub trait MemberWriter {
    /// The error of the output.
    type Error;

    /// Writes one member.
    ///
    /// # Errors
    /// Fails when the output format cannot express the value.
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Self::Error>;

    /// Writes one member whose name the schema does not know.
    ///
    /// # Errors
    /// Fails as [`member`](Self::member) does.
    fn entry<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Self::Error>;
}

impl Members for () {
    fn write<W: MemberWriter>(&self, _: &mut W) -> Result<(), W::Error> {
        Ok(())
    }
}

impl<T: Members> Members for Box<T> {
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error> {
        (**self).write(out)
    }
}

/// Serializes an object.
///
/// # Errors
/// Fails when the serializer does.
#[inline]
pub fn write_object<T: Members, S: Serializer>(
    value: &T,
    name: &'static str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let count = count(value);
    // Compact formats omit the names of a struct, and could not tell which members are absent.
    if count.open || !takes_text::<S>() {
        let mut map = Open(serializer.serialize_map(Some(count.members))?);
        value.write(&mut map)?;
        return map.0.end();
    }
    // A separate case, so that the compiler knows below that there are members.
    if count.members == 0 {
        return serializer.serialize_struct(name, 0)?.end();
    }
    // Writing is faster when all names are static.
    let mut object = Closed(serializer.serialize_struct(name, count.members)?);
    value.write(&mut object)?;
    object.0.end()
}

struct Open<M>(M);

impl<M: SerializeMap> MemberWriter for Open<M> {
    type Error = M::Error;

    #[inline]
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    fn entry<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }
}

struct Closed<S>(S);

impl<S: SerializeStruct> MemberWriter for Closed<S> {
    type Error = S::Error;

    #[inline]
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.0.serialize_field(name, value)
    }

    /// Unreachable: `count` has found static names only.
    fn entry<T: Serialize + ?Sized>(&mut self, name: &str, _: &T) -> Result<(), S::Error> {
        Err(serde_core::ser::Error::custom(format_args!(
            "unknown name `{name}` in an object with static names"
        )))
    }
}

/// Counts the members, for formats that write the count first, and finds out whether all names
/// are static.
#[inline]
fn count<T: Members>(value: &T) -> Count {
    let mut count = Count::default();
    let Ok(()) = value.write(&mut count);
    count
}

#[derive(Default)]
struct Count {
    members: usize,
    /// Whether some names are not static.
    open: bool,
}

impl MemberWriter for Count {
    type Error = Infallible;

    #[inline]
    fn member<T: Serialize + ?Sized>(&mut self, _: &'static str, _: &T) -> Result<(), Infallible> {
        self.members += 1;
        Ok(())
    }

    fn entry<T: Serialize + ?Sized>(&mut self, _: &str, _: &T) -> Result<(), Infallible> {
        self.members += 1;
        self.open = true;
        Ok(())
    }
}

impl Members for UnknownVariant {
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error> {
        let mut fields = self.fields().iter();
        fields.try_for_each(|(name, value)| out.entry(name, value))
    }
}

impl<V: Serialize> Members for Map<V> {
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error> {
        let mut entries = self.iter();
        entries.try_for_each(|(name, value)| out.entry(name, value))
    }
}

impl<T: Members> Members for Option<T> {
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error> {
        match self {
            Some(value) => value.write(out),
            None => Ok(()),
        }
    }
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

/// Writes a member unless it is omitted.
///
/// # Errors
/// Fails as [`MemberWriter::member`] does.
#[inline]
pub fn write_optional<T: Serialize + Omissible, W: MemberWriter>(
    out: &mut W,
    name: &'static str,
    value: &T,
) -> Result<(), W::Error> {
    if value.is_omitted() {
        return Ok(());
    }
    out.member(name, value)
}
