//! The strict reader of tagged unions.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde_core::Deserializer;
use serde_core::de::value::MapAccessDeserializer;
use serde_core::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{Branch, Tagged, UnknownVariant};
use crate::json::decode::{AnyRaw, Kept, Member, Name};
use crate::json::encode_raw;
use crate::json::reader::StrictError;

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
                members.push(Member::placeholder(name));
                if tag.replace(value.into_owned()).is_some() {
                    return Err(A::Error::duplicate_field(T::TAG));
                }
            } else {
                let AnyRaw(raw) = map.next_value()?;
                members.push(Member::new(name, raw));
            }
        }
        match tag {
            Some(tag) => T::read(&tag, Late::new(members, T::TAG)).map_err(|_| {
                let wrong = format_args!("invalid members for the {} `{tag}`", T::TAG);
                A::Error::custom(wrong)
            }),
            None => T::untagged(&Kept { members }).ok_or_else(|| A::Error::missing_field(T::TAG)),
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
    fn collect(mut self) -> Result<Late<'de>, A::Error> {
        let mut members = vec![Member::placeholder(self.tag.into())];
        while let Some(Name(name)) = self.map.next_key()? {
            let AnyRaw(raw) = self.map.next_value()?;
            members.push(Member::new(name, raw));
        }
        Ok(Late::new(members, self.tag))
    }
}

impl<'de, A: MapAccess<'de>> Branch for Rest<'de, A> {
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
        let late = self.collect()?;
        late.payload_or_unknown(tag, known, unknown)
            .map_err(A::Error::custom)
    }
}

/// An object whose tag is known and whose members are kept, the tag's value aside.
struct Late<'de> {
    kept: Kept<'de>,
    tag: &'static str,
}

impl<'de> Late<'de> {
    fn new(members: Vec<Member<'de>>, tag: &'static str) -> Self {
        Self {
            kept: Kept { members },
            tag,
        }
    }
}

impl Branch for Late<'_> {
    type Error = StrictError;

    fn payload<P: DeserializeOwned>(self) -> Result<P, StrictError> {
        self.kept
            .read_without(Some(self.tag))
            .ok_or_else(other_members)
    }

    fn unit(self) -> Result<(), StrictError> {
        Ok(())
    }

    fn unknown(mut self, tag: &str) -> Result<UnknownVariant, StrictError> {
        // Most tags are known, so the tag's own JSON is only made here.
        let raw = encode_raw(&tag).map_err(StrictError::custom)?;
        let members = &mut self.kept.members;
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
        match self.kept.read_without(Some(self.tag)) {
            Some(payload) => Ok(known(payload)),
            None => self.unknown(tag).map(unknown),
        }
    }
}

fn other_members() -> StrictError {
    StrictError::custom("the members are not those of the variant")
}
