//! The members of one object, unparsed: how they are collected and found.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A member of an object, its value unparsed.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) raw: Cow<'a, RawValue>,
    /// Whether a type has claimed it.
    pub(crate) taken: bool,
}

impl<'a> Member<'a> {
    /// A member whose value is held elsewhere.
    pub(crate) fn placeholder(name: Cow<'a, str>) -> Self {
        Self {
            name,
            raw: Cow::Borrowed(RawValue::NULL),
            taken: false,
        }
    }

    pub(crate) fn new(name: Cow<'a, str>, raw: Box<RawValue>) -> Self {
        Self {
            name,
            raw: Cow::Owned(raw),
            taken: false,
        }
    }
}

/// Collects the members of an object whose text can be borrowed.
///
/// # Errors
/// When `raw` is not an object.
pub(super) fn borrowed(raw: &RawValue) -> Result<Vec<Member<'_>>, serde_json::Error> {
    raw.deserialize_map(Members::<&RawValue>(PhantomData))
}

/// Collects the members of the object that `deserializer` is at.
///
/// # Errors
/// When it is at something else.
pub(crate) fn collect<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Member<'de>>, D::Error> {
    deserializer.deserialize_map(Members::<Box<RawValue>>(PhantomData))
}

/// Collects members whose values are `R`, a reference or a copy.
struct Members<R>(PhantomData<R>);

impl<'de, R: Deserialize<'de> + Raw<'de>> Visitor<'de> for Members<R> {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let raw = map.next_value::<R>()?.into_cow();
            members.push(Member {
                name,
                raw,
                taken: false,
            });
        }
        Ok(members)
    }
}

trait Raw<'a> {
    fn into_cow(self) -> Cow<'a, RawValue>;
}

impl<'a> Raw<'a> for &'a RawValue {
    fn into_cow(self) -> Cow<'a, RawValue> {
        Cow::Borrowed(self)
    }
}

impl<'a> Raw<'a> for Box<RawValue> {
    fn into_cow(self) -> Cow<'a, RawValue> {
        Cow::Owned(self)
    }
}

/// A member's name, borrowed where the input allows it.
pub(crate) struct Name<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
