//! Buffered members: unparsed until their type is known, then read by serde.

use std::slice;

use serde_core::Deserializer;
use serde_core::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde_core::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess};
use serde_json::value::RawValue;

use super::descriptor::{DescriptorFn, JsonKind};
use super::members::{Member, RawJson, collect};
use crate::json::reader::{self, Reader, StrictError};

/// The buffered members of an object. Methods return `None` when a value does not fit.
#[derive(Debug)]
pub struct BufferedFields<'de> {
    pub(crate) members: Vec<Member<'de>>,
}

impl BufferedFields<'_> {
    /// Reads a required member.
    pub fn required<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        self.take(name)?.and_then(|raw| read_raw(raw))
    }

    /// Reads a member; absent means the default.
    pub fn optional<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.optional_or(name, T::default)
    }

    /// Reads a member; absent means the result of `default`.
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

    /// Reads a required member; `null` means the default.
    pub fn required_nullable<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.required::<Option<T>>(name)
            .map(Option::unwrap_or_default)
    }

    /// Reads a member; absent and `null` mean the default.
    pub fn nullable<T: DeserializeOwned + Default>(&mut self, name: &str) -> Option<T> {
        self.optional::<Option<T>>(name)
            .map(Option::unwrap_or_default)
    }

    /// Reads the remaining members as a `T`.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.read_without(None)
    }

    /// Reads the remaining members as a union, or `Some(None)` without its tag.
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

    /// Reads the remaining members without those named `skipped`.
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

    /// Takes the member `name`. Fails when it is there twice.
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

    /// The names of the members that no type has claimed.
    fn names(&self) -> impl Iterator<Item = &str> {
        let free = self.members.iter().filter(|member| !member.taken);
        free.map(|member| &*member.name)
    }
}

/// Reads the text of a value strictly.
#[must_use]
pub fn read_raw<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    // The reader that buffered the value has limited its depth.
    reader::read_deep(raw.get()).ok()
}

/// Deserializes an object whose members belong to several types.
///
/// # Errors
/// Fails when `read` returns `None`.
pub fn read_shared_object<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: fn(&mut BufferedFields<'_>) -> Option<T>,
) -> Result<T, D::Error> {
    let mut members = BufferedFields {
        members: collect(deserializer)?,
    };
    read(&mut members).ok_or_else(|| D::Error::custom("invalid members for the type"))
}

/// The required members of a union branch, its type, and how to read it.
type ObjectBranch<T> = (
    &'static [&'static str],
    DescriptorFn,
    fn(&BufferedFields<'_>) -> Option<T>,
);

/// Deserializes an untagged union of objects as the first branch that accepts the members.
/// Branches that know all of the members come before those that would drop some.
///
/// # Errors
/// Fails when no branch accepts them.
pub fn read_object_union<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
    branches: &[ObjectBranch<T>],
) -> Result<T, D::Error> {
    let members = BufferedFields {
        members: collect(deserializer)?,
    };
    let complete = |(names, ..): &&ObjectBranch<T>| names.iter().all(|name| members.has(name));
    let read = |all: bool| {
        let mut branches = branches.iter().filter(complete);
        branches.find_map(|(_, of, read)| {
            let knows = of().knows(members.names());
            (knows == all).then(|| read(&members)).flatten()
        })
    };
    read(true)
        .or_else(|| read(false))
        .ok_or_else(|| D::Error::custom(format_args!("invalid value: expected {expected}")))
}

/// The JSON kind of a union branch, its type, and how to read it.
type ValueBranch<T> = (JsonKind, DescriptorFn, fn(&RawValue) -> Option<T>);

/// Deserializes an untagged union of values as the first branch that accepts the value. Branches
/// that know all members of an object come before those that would drop some.
///
/// # Errors
/// Fails when no branch accepts it.
pub fn read_value_union<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
    branches: &[ValueBranch<T>],
) -> Result<T, D::Error> {
    let RawJson(raw) = serde_core::Deserialize::deserialize(deserializer)?;
    let members = members_of(&raw);
    let read = |all: bool| {
        let mut branches = branches.iter().filter(|(form, ..)| form.has(&raw));
        branches.find_map(|(_, of, read)| {
            let knows = of().knows(members.iter().map(|member| &*member.name));
            (knows == all).then(|| read(&raw)).flatten()
        })
    };
    read(true)
        .or_else(|| read(false))
        .ok_or_else(|| D::Error::custom(format_args!("invalid value: expected {expected}")))
}

/// The members of a value; none of a value that is not an object.
pub(super) fn members_of(raw: &RawValue) -> Vec<Member<'_>> {
    match JsonKind::Object.has(raw) {
        true => collect(&mut Reader::deep(raw.get())).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// Buffered members as a `MapAccess`.
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
