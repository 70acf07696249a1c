//! Members that were kept unparsed until it is known what they belong to, and
//! that serde then reads as if they came only now.

use std::slice;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IntoDeserializer, MapAccess};
use serde_json::value::RawValue;

use super::members::{Member, collect};
use crate::json::reader::{Reader, Refused};

/// The members of an object, for the strict reader.
#[derive(Debug)]
pub struct Kept<'de> {
    pub(crate) members: Vec<Member<'de>>,
}

impl Kept<'_> {
    /// Reads the members as a `T`, if they are those of one.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.read_without(None)
    }

    /// Reads the members but for the one called `skipped`.
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

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }
}

/// How to read one branch of a union of objects, and the members it must have.
type Branch<T> = (&'static [&'static str], fn(&Kept<'_>) -> Option<T>);

/// `Deserialize` for a union of objects without a tag: the first branch that takes
/// the members.
///
/// # Errors
/// When there is none.
pub fn first_object_of<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &str,
    branches: &[Branch<T>],
) -> Result<T, D::Error> {
    let kept = Kept {
        members: collect(deserializer)?,
    };
    let complete = |(names, _): &&Branch<T>| names.iter().all(|name| kept.has(name));
    branches
        .iter()
        .filter(complete)
        .find_map(|(_, read)| read(&kept))
        .ok_or_else(|| D::Error::custom(format_args!("invalid value: expected {expected}")))
}

/// Kept members, as serde wants them.
struct Replay<'a, 'de> {
    members: slice::Iter<'a, Member<'de>>,
    skipped: Option<&'static str>,
    value: Option<&'a RawValue>,
}

impl<'a> MapAccess<'a> for Replay<'a, '_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let skipped = self.skipped;
        let Some(member) = self.members.find(|member| Some(&*member.name) != skipped) else {
            return Ok(None);
        };
        self.value = Some(&*member.raw);
        seed.deserialize((*member.name).into_deserializer())
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let value = self.value.take().unwrap_or(RawValue::NULL);
        seed.deserialize(&mut Reader::new(value.get()))
    }
}
