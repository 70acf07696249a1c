//! How objects are written: member by member, alone or among the members of another object.

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
    /// As [`MemberWriter::member`].
    fn write<W: MemberWriter>(&self, out: &mut W) -> Result<(), W::Error>;
}

/// An object that is being written.
pub trait MemberWriter {
    /// The error of the output.
    type Error;

    /// Writes one member.
    ///
    /// # Errors
    /// When the value has no form in the output.
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Self::Error>;

    /// Writes the members of a variant that nobody knows.
    ///
    /// # Errors
    /// As [`member`](Self::member).
    fn unknown(&mut self, variant: &UnknownVariant) -> Result<(), Self::Error>;
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

/// `Serialize` for an object.
///
/// # Errors
/// When the serializer fails.
#[inline]
pub fn write_object<T: Members, S: Serializer>(
    value: &T,
    name: &'static str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let count = count(value);
    // A format that leaves out the names in a struct could not tell which members are absent.
    if count.open || !takes_text::<S>() {
        let mut map = Open(serializer.serialize_map(Some(count.members))?);
        value.write(&mut map)?;
        return map.0.end();
    }
    // Written apart, so that what follows knows that there are members.
    if count.members == 0 {
        return serializer.serialize_struct(name, 0)?.end();
    }
    // With names that are all known, writing is faster.
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

    fn unknown(&mut self, variant: &UnknownVariant) -> Result<(), M::Error> {
        let mut fields = variant.fields().iter();
        fields.try_for_each(|(name, value)| self.0.serialize_entry(name, value))
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

    /// Nothing that is closed gets here.
    fn unknown(&mut self, _: &UnknownVariant) -> Result<(), S::Error> {
        Err(serde_core::ser::Error::custom(
            "an unknown variant in a closed object",
        ))
    }
}

/// What must be known before the first member: how many there are, for formats other than JSON,
/// and whether all names are known.
#[inline]
fn count<T: Members>(value: &T) -> Count {
    let mut count = Count::default();
    let Ok(()) = value.write(&mut count);
    count
}

#[derive(Default)]
struct Count {
    members: usize,
    /// Whether some have names that only the value knows.
    open: bool,
}

impl MemberWriter for Count {
    type Error = Infallible;

    #[inline]
    fn member<T: Serialize + ?Sized>(&mut self, _: &'static str, _: &T) -> Result<(), Infallible> {
        self.members += 1;
        Ok(())
    }

    fn unknown(&mut self, variant: &UnknownVariant) -> Result<(), Infallible> {
        self.members += variant.fields().len();
        self.open = true;
        Ok(())
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

/// A value that is left out of its object when it says nothing.
pub trait Omissible {
    /// Whether it says nothing.
    fn says_nothing(&self) -> bool;
}

impl<T> Omissible for Option<T> {
    #[inline]
    fn says_nothing(&self) -> bool {
        self.is_none()
    }
}

impl<T> Omissible for Patch<T> {
    #[inline]
    fn says_nothing(&self) -> bool {
        self.is_absent()
    }
}

impl<T> Omissible for Vec<T> {
    #[inline]
    fn says_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<V> Omissible for Map<V> {
    #[inline]
    fn says_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// Writes a member unless it says nothing.
///
/// # Errors
/// As [`MemberWriter::member`].
#[inline]
pub fn write_optional<T: Serialize + Omissible, W: MemberWriter>(
    out: &mut W,
    name: &'static str,
    value: &T,
) -> Result<(), W::Error> {
    if value.says_nothing() {
        return Ok(());
    }
    out.member(name, value)
}
