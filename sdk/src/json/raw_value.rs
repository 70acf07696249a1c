//! Recognizes types of serde_json that read and write JSON text verbatim.
//!
//! A `RawValue` requests a newtype of a certain name from a deserializer, and serializes itself
//! as a struct of a certain name. So does a `Number` where a feature of serde_json keeps numbers
//! as text. These names are private to serde_json; they are recorded at run time by reading and
//! writing one value of each type.

use std::fmt;
use std::sync::LazyLock;

use serde_core::de::{Deserializer, Visitor};
use serde_core::forward_to_deserialize_any;
use serde_core::ser::{Impossible, Serialize, Serializer};
use serde_json::value::RawValue;

static ASKED: LazyLock<&'static str> =
    LazyLock::new(
        || match <&RawValue as serde_core::Deserialize>::deserialize(Probe) {
            Err(Name(name)) => name,
            Ok(_) => "",
        },
    );

static WRITTEN: LazyLock<[&'static str; 2]> = LazyLock::new(|| {
    let name = |written: Result<(), Name>| written.err().map_or("", |Name(name)| name);
    [
        name(RawValue::NULL.serialize(Probe)),
        name(serde_json::Number::from(0).serialize(Probe)),
    ]
});

/// Returns the newtype name by which a `RawValue` requests the text of a value.
#[inline]
pub(super) fn asked_name() -> &'static str {
    &ASKED
}

/// Returns whether `name` is [`asked_name`].
#[inline]
pub(super) fn is_asked(name: &str) -> bool {
    let asked: &str = &ASKED;
    // Mostly it is the same string, and a comparison of addresses is enough.
    name.len() == asked.len() && (std::ptr::eq(name, asked) || name == asked)
}

/// Returns whether a struct of one member holds JSON text.
#[inline]
pub(super) fn is_text(name: &str) -> bool {
    !name.is_empty() && WRITTEN.contains(&name)
}

/// Records the name under which a value is read or written.
struct Probe;

/// The recorded name; empty if none.
#[derive(Debug)]
struct Name(&'static str);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Name {}

impl serde_core::de::Error for Name {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self("")
    }
}

impl serde_core::ser::Error for Name {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self("")
    }
}

impl<'de> Deserializer<'de> for Probe {
    type Error = Name;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Name> {
        Err(Name(""))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: V,
    ) -> Result<V::Value, Name> {
        Err(Name(name))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        option unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Methods that record no name.
macro_rules! nothing {
    ($($method:ident($($argument:ty),*) -> $ok:ty;)*) => {
        $(fn $method(self $(, _: $argument)*) -> Result<$ok, Name> {
            Err(Name(""))
        })*
    };
}

impl Serializer for Probe {
    type Ok = ();
    type Error = Name;
    type SerializeSeq = Impossible<(), Name>;
    type SerializeTuple = Impossible<(), Name>;
    type SerializeTupleStruct = Impossible<(), Name>;
    type SerializeTupleVariant = Impossible<(), Name>;
    type SerializeMap = Impossible<(), Name>;
    type SerializeStruct = Impossible<(), Name>;
    type SerializeStructVariant = Impossible<(), Name>;

    nothing! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Impossible<(), Name>;
        serialize_tuple(usize) -> Impossible<(), Name>;
        serialize_tuple_struct(&'static str, usize) -> Impossible<(), Name>;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Name>;
        serialize_map(Option<usize>) -> Impossible<(), Name>;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Impossible<(), Name>;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Name> {
        Err(Name(""))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: &T,
    ) -> Result<(), Name> {
        Err(Name(""))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Name> {
        Err(Name(""))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct, Name> {
        Err(Name(name))
    }
}
