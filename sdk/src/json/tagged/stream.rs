//! The strict reader of tagged unions.

use std::fmt;
use std::marker::PhantomData;
use std::slice;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::value::RawValue;

use super::{Branch, Tagged, UnknownVariant, tagged_object};
use crate::json::decode::{Member, Name};
use crate::json::{Decode, FromObject, Object};

/// `Deserialize` for a tagged union.
///
/// # Errors
/// When the input is not a `T`.
pub fn tagged<'de, T: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the tag `{}`", T::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut members: Vec<Member<'de>> = Vec::new();
        let mut tag: Option<String> = None;
        while let Some(Name(name)) = map.next_key()? {
            if name == T::TAG {
                let Name(value) = map.next_value()?;
                if members.is_empty() {
                    let rest = Rest {
                        map,
                        tag: T::TAG,
                        input: PhantomData,
                    };
                    return T::read(&value, rest);
                }
                let raw = serde_json::value::to_raw_value(&value).map_err(A::Error::custom)?;
                members.push(Member::new(name, raw));
                if tag.replace(value.into_owned()).is_some() {
                    return Err(A::Error::duplicate_field(T::TAG));
                }
            } else {
                members.push(Member::new(name, map.next_value::<Box<RawValue>>()?));
            }
        }
        match tag {
            Some(tag) => T::read(
                &tag,
                Late {
                    members,
                    tag: T::TAG,
                },
            )
            .map_err(A::Error::custom),
            None => {
                let mut cx = Decode::strict();
                tagged_object(&mut Object::new(members, &mut cx)).map_err(A::Error::custom)
            }
        }
    }
}

/// The rest of an object whose tag came first: the payload is read as it comes.
struct Rest<'de, A> {
    map: A,
    tag: &'static str,
    input: PhantomData<&'de ()>,
}

impl<'de, A: MapAccess<'de>> Rest<'de, A> {
    /// All members, the tag first among them.
    fn collect(mut self, tag: &str) -> Result<Late<'de>, A::Error> {
        let raw = serde_json::value::to_raw_value(tag).map_err(A::Error::custom)?;
        let mut members = vec![Member::new(self.tag.into(), raw)];
        while let Some(Name(name)) = self.map.next_key()? {
            members.push(Member::new(name, self.map.next_value::<Box<RawValue>>()?));
        }
        Ok(Late {
            members,
            tag: self.tag,
        })
    }
}

impl<'de, A: MapAccess<'de>> Branch for Rest<'de, A> {
    type Error = A::Error;

    fn payload<P: FromObject + DeserializeOwned>(self) -> Result<P, A::Error> {
        P::deserialize(MapAccessDeserializer::new(self.map))
    }

    fn unit(mut self) -> Result<(), A::Error> {
        while self.map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn unknown(self, tag: &str) -> Result<UnknownVariant, A::Error> {
        self.collect(tag)?.unknown(tag).map_err(A::Error::custom)
    }

    fn payload_or_unknown<P: FromObject + DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, A::Error> {
        let late = self.collect(tag)?;
        late.payload_or_unknown(tag, known, unknown)
            .map_err(A::Error::custom)
    }
}

/// An object whose tag came after other members, which were kept unparsed.
struct Late<'de> {
    members: Vec<Member<'de>>,
    tag: &'static str,
}

impl Late<'_> {
    fn read<P: DeserializeOwned>(&self) -> Result<P, serde_json::Error> {
        let members = self.members.iter();
        P::deserialize(MapAccessDeserializer::new(Replay {
            members,
            tag: self.tag,
            value: None,
        }))
    }
}

impl Branch for Late<'_> {
    type Error = serde_json::Error;

    fn payload<P: FromObject + DeserializeOwned>(self) -> Result<P, Self::Error> {
        self.read()
    }

    fn unit(self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn unknown(self, tag: &str) -> Result<UnknownVariant, Self::Error> {
        Ok(UnknownVariant::from_members(tag, self.members.iter()))
    }

    fn payload_or_unknown<P: FromObject + DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, Self::Error> {
        match self.read() {
            Ok(payload) => Ok(known(payload)),
            Err(_) => self.unknown(tag).map(unknown),
        }
    }
}

/// Kept members, as serde wants them.
struct Replay<'a, 'de> {
    members: slice::Iter<'a, Member<'de>>,
    tag: &'static str,
    value: Option<&'a RawValue>,
}

impl<'a> MapAccess<'a> for Replay<'a, '_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let Some(member) = self.members.find(|member| member.name != self.tag) else {
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
        seed.deserialize(value)
    }
}
