//! The unparsed members of one object.

use std::borrow::Cow;
use std::fmt;

use serde_core::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde_core::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::transcode::Transcoder;
use crate::json::writer::Writer;
use crate::json::{raw_value, reader};

/// A member of an object, its value unparsed.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) raw: Cow<'a, RawValue>,
    /// Whether a type has claimed it.
    pub(crate) taken: bool,
}

impl<'a> Member<'a> {
    /// Creates a member whose value is stored elsewhere.
    pub(crate) fn placeholder(name: Cow<'a, str>) -> Self {
        Self {
            name,
            raw: Cow::Borrowed(RawValue::NULL),
            taken: false,
        }
    }

    pub(crate) fn new(name: Cow<'a, str>, raw: Cow<'a, RawValue>) -> Self {
        Self {
            name,
            raw,
            taken: false,
        }
    }
}

/// Collects the members of an object.
///
/// # Errors
/// Fails when the input is not an object.
pub(crate) fn collect<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Member<'de>>, D::Error> {
    deserializer.deserialize_map(Members)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(MemberName(name)) = map.next_key()? {
            let RawJson(raw) = map.next_value()?;
            members.push(Member::new(name, raw));
        }
        Ok(members)
    }
}

/// The JSON text of a value, borrowed from the input where possible.
///
/// Values of other formats are transcoded to JSON text.
pub(crate) struct RawJson<'a>(pub(crate) Cow<'a, RawValue>);

impl<'de> Deserialize<'de> for RawJson<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Readers of JSON text recognize this name, because `RawValue` uses it too.
        deserializer.deserialize_newtype_struct(raw_value::asked_name(), RawJsonVisitor)
    }
}

struct RawJsonVisitor;

/// Visitor methods for scalars of formats other than JSON text.
macro_rules! values {
    ($($visit:ident($($value:ident: $type:ty)?),)*) => {
        $(fn $visit<E: serde_core::de::Error>(
            self
            $(, $value: $type)?
        ) -> Result<Self::Value, E> {
            let mut text = Vec::new();
            Transcoder::new(Writer::new(&mut text)).$visit($($value)?)?;
            owned(text)
        })*
    };
}

impl<'de> Visitor<'de> for RawJsonVisitor {
    type Value = RawJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    /// Readers of JSON text pass the text as the only member of an object.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let first = map.next_key::<MemberName<'_>>()?;
        match first {
            Some(MemberName(name)) if raw_value::is_asked(&name) => {}
            first => return transcode_map(first, map),
        }
        match map.next_value()? {
            MemberName(Cow::Borrowed(text)) => reader::raw(text)
                .map(|raw| RawJson(Cow::Borrowed(raw)))
                .map_err(A::Error::custom),
            MemberName(Cow::Owned(text)) => RawValue::from_string(text)
                .map(|raw| RawJson(Cow::Owned(raw)))
                .map_err(A::Error::custom),
        }
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let mut text = Vec::new();
        from.deserialize_any(Transcoder::new(Writer::new(&mut text)))?;
        owned(text)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        self.visit_newtype_struct(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        let mut text = Vec::new();
        Transcoder::new(Writer::new(&mut text)).visit_seq(seq)?;
        owned(text)
    }

    values! {
        visit_bool(value: bool),
        visit_i64(value: i64),
        visit_i128(value: i128),
        visit_u64(value: u64),
        visit_u128(value: u128),
        visit_f64(value: f64),
        visit_char(value: char),
        visit_str(value: &str),
        visit_bytes(value: &[u8]),
        visit_none(),
        visit_unit(),
    }
}

/// Transcodes an object whose first name was read. Apart, because JSON text has no need of it.
#[cold]
fn transcode_map<'a, 'de, A: MapAccess<'de>>(
    first: Option<MemberName<'de>>,
    map: A,
) -> Result<RawJson<'a>, A::Error> {
    let mut text = Vec::new();
    let name = first.as_ref().map(|MemberName(name)| &**name);
    Transcoder::new(Writer::new(&mut text)).object(name, map)?;
    owned(text)
}

/// Turns written JSON text into a value.
fn owned<'a, E: serde_core::de::Error>(text: Vec<u8>) -> Result<RawJson<'a>, E> {
    let text = String::from_utf8(text).map_err(E::custom)?;
    let raw = reader::boxed(text).map_err(E::custom)?;
    Ok(RawJson(Cow::Owned(raw)))
}

/// The name of a member, borrowed from the input where possible.
pub(crate) struct MemberName<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = MemberName<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(MemberName(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(MemberName(Cow::Owned(name.to_owned())))
    }
}
