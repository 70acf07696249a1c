//! Deserializes tagged unions.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde_core::Deserializer;
use serde_core::de::value::MapAccessDeserializer;
use serde_core::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{TaggedUnion, UnknownVariant, VariantReader};
use crate::json::decode::{BufferedFields, Member, MemberName, RawJson};
use crate::json::encode_raw;
use crate::json::reader::StrictError;

/// Deserializes a tagged union.
///
/// # Errors
/// Fails when the input is not a `T`.
pub fn read_tagged_union<'de, T: TaggedUnion, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: TaggedUnion> Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the tag `{}`", T::TAG)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut members: Vec<Member<'de>> = Vec::new();
        let mut tag: Option<String> = None;
        while let Some(MemberName(name)) = map.next_key()? {
            if name == T::TAG && tag.is_some() {
                // The first tag counts wherever it stands: the payload behind it is streamed.
                map.next_value::<IgnoredAny>()?;
            } else if name == T::TAG {
                let MemberName(value) = map.next_value()?;
                if members.is_empty() {
                    let rest = StreamedVariant {
                        map,
                        tag: T::TAG,
                        input: PhantomData,
                    };
                    return T::read(&value, rest);
                }
                members.push(Member::placeholder(name));
                tag = Some(value.into_owned());
            } else {
                let RawJson(raw) = map.next_value()?;
                members.push(Member::new(name, raw));
            }
        }
        match tag {
            Some(tag) => T::read(&tag, BufferedVariant::new(members, T::TAG)).map_err(|_| {
                let wrong = format_args!("invalid members for the {} `{tag}`", T::TAG);
                A::Error::custom(wrong)
            }),
            None => T::untagged(&BufferedFields { members })
                .ok_or_else(|| A::Error::missing_field(T::TAG)),
        }
    }
}

/// The rest of an object whose tag came first. The payload is streamed.
struct StreamedVariant<'de, A> {
    map: A,
    tag: &'static str,
    input: PhantomData<&'de ()>,
}

impl<'de, A: MapAccess<'de>> StreamedVariant<'de, A> {
    /// Buffers all members, the tag first.
    fn collect(mut self) -> Result<BufferedVariant<'de>, A::Error> {
        let mut members = vec![Member::placeholder(self.tag.into())];
        while let Some(MemberName(name)) = self.map.next_key()? {
            let RawJson(raw) = self.map.next_value()?;
            members.push(Member::new(name, raw));
        }
        Ok(BufferedVariant::new(members, self.tag))
    }
}

impl<'de, A: MapAccess<'de>> VariantReader for StreamedVariant<'de, A> {
    type Error = A::Error;

    fn payload<P: DeserializeOwned>(self) -> Result<P, A::Error> {
        P::deserialize(MapAccessDeserializer::new(self.map))
    }

    fn unit(mut self) -> Result<(), A::Error> {
        while self.map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn unknown(self, tag: &str) -> Result<UnknownVariant, A::Error> {
        self.collect()?.unknown(tag).map_err(A::Error::custom)
    }

    fn payload_or_unknown<P: DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, A::Error> {
        let buffered = self.collect()?;
        buffered
            .payload_or_unknown(tag, known, unknown)
            .map_err(A::Error::custom)
    }
}

/// An object with a known tag and buffered members.
struct BufferedVariant<'de> {
    members: BufferedFields<'de>,
    tag: &'static str,
}

impl<'de> BufferedVariant<'de> {
    fn new(members: Vec<Member<'de>>, tag: &'static str) -> Self {
        Self {
            members: BufferedFields { members },
            tag,
        }
    }
}

impl VariantReader for BufferedVariant<'_> {
    type Error = StrictError;

    fn payload<P: DeserializeOwned>(self) -> Result<P, StrictError> {
        self.members
            .read_without(Some(self.tag))
            .ok_or_else(other_members)
    }

    fn unit(self) -> Result<(), StrictError> {
        Ok(())
    }

    fn unknown(mut self, tag: &str) -> Result<UnknownVariant, StrictError> {
        // The tag's JSON text is made here, because most variants do not need it.
        let raw = encode_raw(&tag).map_err(StrictError::custom)?;
        let members = &mut self.members.members;
        if let Some(member) = members.iter_mut().find(|member| member.name == self.tag) {
            member.raw = Cow::Owned(raw);
        }
        Ok(UnknownVariant::from_members(tag, members.iter()))
    }

    fn payload_or_unknown<P: DeserializeOwned, T>(
        self,
        tag: &str,
        known: fn(P) -> T,
        unknown: fn(UnknownVariant) -> T,
    ) -> Result<T, StrictError> {
        match self.members.read_without(Some(self.tag)) {
            Some(payload) => Ok(known(payload)),
            None => self.unknown(tag).map(unknown),
        }
    }
}

fn other_members() -> StrictError {
    StrictError::custom("invalid members for the variant")
}
