//! Members that were kept unparsed until it is known what they belong to, and
//! that serde then reads as if they came only now.

use std::slice;

use serde_core::Deserializer;
use serde_core::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde_core::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess};
use serde_json::value::RawValue;

use super::members::{AnyRaw, Member, collect};
use super::shape::Form;
use crate::json::reader::{self, Reader, StrictError};

/// The members of an object, for the strict reader. What does not fit is `None`.
#[derive(Debug)]
pub struct Kept<'de> {
    pub(crate) members: Vec<Member<'de>>,
}

impl Kept<'_> {
    /// A member that must be there.
    pub fn required<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.take(name)?.and_then(|raw| read_raw(raw))
    }

    /// A member whose absence means the default.
    pub fn optional<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.optional_or(name, T::default)
    }

    /// A member whose absence means what `default` makes.
    pub fn optional_or<T: DeserializeOwned>(
        &mut self,
        name: &str,
        default: fn() -> T,
    ) -> Option<T> {
        match self.take(name)? {
            Some(raw) => read_raw(raw),
            None => Some(default()),
        }
    }

    /// A member that must be there, and for which `null` means the default.
    pub fn required_nullable<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.required::<Option<T>>(name)
            .map(Option::unwrap_or_default)
    }

    /// A member for which absence and `null` mean the default.
    pub fn nullable<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.optional::<Option<T>>(name)
            .map(Option::unwrap_or_default)
    }

    /// Reads the members that nobody has taken as a `T`, if they are those of one.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.read_without(None)
    }

    /// As [`Self::read`]; nothing when the tag of the union `T` is absent or null.
    pub fn read_optional<T: DeserializeOwned>(&mut self, tag: &str) -> Option<Option<T>> {
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|member| !member.taken && member.name == tag) else {
            return Some(None);
        };
        if member.raw.get() == "null" {
            member.taken = true;
            return Some(None);
        }
        self.read().map(Some)
    }

    /// Reads the members but for those called `skipped`.
    pub(crate) fn read_without<T: DeserializeOwned>(
        &self,
        skipped: Option<&'static str>,
    ) -> Option<T> {
        let replay = Replay {
            members: self.members.iter(),
            skipped,
            value: None,
        };
        T::deserialize(MapAccessDeserializer::new(replay)).ok()
    }

    /// Takes the member `name`, if it is there; there may be no second one.
    fn take(&mut self, name: &str) -> Option<Option<&RawValue>> {
        let mut members = self.members.iter_mut();
        let Some(member) = members.find(|member| !member.taken && member.name == name) else {
            return Some(None);
        };
        if members.any(|member| member.name == name) {
            return None;
        }
        member.taken = true;
        Some(Some(&*member.raw))
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }
}

/// Reads a value strictly.
#[must_use]
pub fn read_raw<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    // How deep it may nest was for the reader to say that has kept it.
    reader::read_deep(raw.get()).ok()
}

/// `Deserialize` for an object whose members belong to several types.
///
/// # Errors
/// When `read` does not find what it needs.
pub fn object<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: fn(&mut Kept<'_>) -> Option<T>,
) -> Result<T, D::Error> {
    let mut kept = Kept {
        members: collect(deserializer)?,
    };
    read(&mut kept).ok_or_else(|| D::Error::custom("the members are not those of the type"))
}

/// How to read one branch of a union of objects, and the members it must have.
type ObjectBranch<T> = (&'static [&'static str], fn(&Kept<'_>) -> Option<T>);

/// `Deserialize` for a union of objects without a tag: the first branch that takes
/// the members.
///
/// # Errors
/// When there is none.
pub fn first_object_of<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
    branches: &[ObjectBranch<T>],
) -> Result<T, D::Error> {
    let kept = Kept {
        members: collect(deserializer)?,
    };
    let complete = |(names, _): &&ObjectBranch<T>| names.iter().all(|name| kept.has(name));
    branches
        .iter()
        .filter(complete)
        .find_map(|(_, read)| read(&kept))
        .ok_or_else(|| D::Error::custom(format_args!("invalid value: expected {expected}")))
}

/// How to read one branch of a union of values, and the form it takes.
type ValueBranch<T> = (Form, fn(&RawValue) -> Option<T>);

/// `Deserialize` for a union of values without a tag: the first branch that takes the value.
///
/// # Errors
/// When there is none.
pub fn first_value_of<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
    branches: &[ValueBranch<T>],
) -> Result<T, D::Error> {
    let AnyRaw(raw) = serde_core::Deserialize::deserialize(deserializer)?;
    branches
        .iter()
        .filter(|(form, _)| form.has(&raw))
        .find_map(|(_, read)| read(&raw))
        .ok_or_else(|| D::Error::custom(format_args!("invalid value: expected {expected}")))
}

/// Kept members, as serde wants them.
struct Replay<'a, 'de> {
    members: slice::Iter<'a, Member<'de>>,
    skipped: Option<&'static str>,
    value: Option<&'a RawValue>,
}

impl<'a> MapAccess<'a> for Replay<'a, '_> {
    type Error = StrictError;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let skipped = self.skipped;
        let member = self
            .members
            .find(|member| !member.taken && Some(&*member.name) != skipped);
        let Some(member) = member else {
            return Ok(None);
        };
        self.value = Some(&*member.raw);
        let name = BorrowedStrDeserializer::new(&member.name);
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let value = self.value.take().unwrap_or(RawValue::NULL);
        seed.deserialize(&mut Reader::deep(value.get()))
    }
}
