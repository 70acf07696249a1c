//! Tests of tagged unions: position of the tag, unknown variants, written text.

use serde::ser::SerializeMap;

use super::{TaggedUnion, UnknownVariant, VariantReader};
use crate::json::described::read;
use crate::json::object::{Members, write_variant};
use crate::json::reader::StrictError;
use crate::runtime;

#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    count: Option<u8>,
}

runtime::members!(Entry {
    name "name": String = required,
    count "count": Option<u8> = optional,
});

/// A payload that says itself what it is, as one for unknown tags may.
#[derive(Debug, PartialEq)]
struct Loose {
    n: u8,
}

runtime::members!(Loose { n "n": u8 = required });

#[derive(Debug, PartialEq)]
enum Union {
    Entry(Entry),
    Nothing,
    Default(Entry),
    Unknown(UnknownVariant),
}

impl TaggedUnion for Union {
    const TAG: &'static str = "type";

    fn read(tag: &str, variant: VariantReader<'_, '_>) -> Result<Self, StrictError> {
        match tag {
            "entry" => variant.payload().map(Self::Entry),
            "nothing" => variant.unit().map(|()| Self::Nothing),
            other => variant.unknown(other).map(Self::Unknown),
        }
    }

    fn read_untagged(variant: VariantReader<'_, '_>) -> Result<Self, StrictError> {
        variant.payload().map(Self::Default)
    }
}

impl Members for Union {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Entry(entry) => write_variant(out, ["type", "entry"], entry),
            Self::Nothing => write_variant(out, ["type", "nothing"], &()),
            Self::Default(entry) => entry.write(out),
            Self::Unknown(variant) => variant.write(out),
        }
    }
}

runtime::tagged_union!(Union ["type"] or Entry { "entry": Entry, "nothing": () });

#[derive(Debug, PartialEq)]
enum Open {
    Loose(Loose),
    Unknown(UnknownVariant),
}

impl TaggedUnion for Open {
    const TAG: &'static str = "type";

    fn read(tag: &str, variant: VariantReader<'_, '_>) -> Result<Self, StrictError> {
        variant.payload_or_unknown(tag, Self::Loose, Self::Unknown)
    }
}

impl Members for Open {
    fn write<M: SerializeMap>(&self, out: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Loose(loose) => loose.write(out),
            Self::Unknown(variant) => variant.write(out),
        }
    }
}

runtime::tagged_union!(Open ["type"] otherwise Loose {});

fn entry(name: &str, count: Option<u8>) -> Entry {
    Entry {
        name: name.to_owned(),
        count,
    }
}

#[test]
fn a_tag_may_stand_anywhere() {
    for text in [
        r#"{"type":"entry","name":"n","count":1}"#,
        r#"{"name":"n","type":"entry","count":1}"#,
        r#"{"name":"n","count":1,"ty\u0070e":"entry"}"#,
    ] {
        assert_eq!(read(text), Ok(Union::Entry(entry("n", Some(1)))), "{text}");
    }
    for text in [
        r#"{"type":"nothing"}"#,
        r#"{"type":"nothing","x":[1]}"#,
        r#"{"x":[1],"type":"nothing"}"#,
    ] {
        assert_eq!(read(text), Ok(Union::Nothing), "{text}");
    }
}

#[test]
fn members_that_are_not_those_of_the_variant_are_refused() {
    for text in [
        r#"{"type":"entry"}"#,
        r#"{"type":"entry","name":5}"#,
        r#"{"name":5,"type":"entry"}"#,
        r#"{"count":1,"type":"entry"}"#,
        r#"{"name":"n","type":5}"#,
        r#"{"type":null,"name":"n"}"#,
        r#"{"type":"nothing",}"#,
        "[]",
    ] {
        assert!(read::<Union>(text).is_err(), "{text}");
    }
}

#[test]
fn of_several_tags_the_first_counts_wherever_it_stands() {
    for text in [
        r#"{"type":"entry","name":"n","type":"nothing"}"#,
        r#"{"name":"n","type":"entry","type":"nothing"}"#,
        r#"{"name":"n","type":"entry","type":[]}"#,
    ] {
        assert_eq!(read(text), Ok(Union::Entry(entry("n", None))), "{text}");
    }
}

#[test]
fn without_a_tag_the_members_are_those_of_the_default() {
    let text = r#"{"count":2,"name":"n","more":0}"#;
    assert_eq!(read(text), Ok(Union::Default(entry("n", Some(2)))));
    assert!(read::<Union>(r#"{"count":2}"#).is_err());
    assert!(read::<Open>(r#"{"n":2}"#).is_err());
}

#[test]
fn an_unknown_variant_keeps_its_members_and_their_order() {
    for text in [
        r#"{"type":"la\"ter","a":1.0,"b":[{}]}"#,
        r#"{"a":1.0,"type":"la\"ter","b":[{}]}"#,
        r#"{"a":1.0,"b":[{}],"type":"la\"ter"}"#,
    ] {
        let Ok(Union::Unknown(unknown)) = read(text) else {
            panic!("{text} should be kept");
        };
        assert_eq!(unknown.tag(), "la\"ter");
        assert_eq!(serde_json::to_string(&unknown).unwrap(), text);
    }
}

#[test]
fn a_default_may_take_unknown_tags() {
    for text in [r#"{"type":"x","n":1}"#, r#"{"n":1,"type":"x"}"#] {
        assert_eq!(read(text), Ok(Open::Loose(Loose { n: 1 })), "{text}");
    }
    for text in [r#"{"type":"x","n":"1"}"#, r#"{"n":"1","type":"x"}"#] {
        let Ok(Open::Unknown(unknown)) = read(text) else {
            panic!("{text} should be kept");
        };
        assert_eq!(serde_json::to_string(&unknown).unwrap(), text);
    }
}

#[test]
fn a_tag_is_written_before_the_members() {
    for (union, text) in [
        (
            Union::Entry(entry("n", Some(1))),
            r#"{"type":"entry","name":"n","count":1}"#,
        ),
        (Union::Nothing, r#"{"type":"nothing"}"#),
        (Union::Default(entry("n", None)), r#"{"name":"n"}"#),
    ] {
        assert_eq!(serde_json::to_string(&union).unwrap(), text);
        assert_eq!(read(text), Ok(union));
    }
}

/// An object that a union and a map share, with a member that both of them must not see.
#[derive(Debug, PartialEq)]
struct Shared {
    name: String,
    union: Union,
    rest: crate::json::Map<crate::json::Json>,
}

runtime::members!(Shared {
    name "name": String = required,
    union "type": Union = required + flattened,
    rest "": crate::json::Map<crate::json::Json> = required + flattened,
});

#[test]
fn types_that_share_an_object_read_its_members_again() {
    for text in [
        r#"{"name":"n","type":"later","x":[1]}"#,
        r#"{"x":[1],"type":"later","name":"n"}"#,
    ] {
        let shared: Shared = read(text).unwrap();
        let Union::Unknown(unknown) = &shared.union else {
            panic!("{shared:?}");
        };
        assert!(unknown.get("name").is_none(), "{shared:?}");
        assert_eq!(unknown.get("x").map(crate::json::Json::get), Some("[1]"));
        assert!(shared.rest.get("name").is_none() && shared.rest.get("x").is_some());
    }
    // The payload has a member that the outer type has claimed.
    assert!(read::<Shared>(r#"{"type":"entry","name":"n"}"#).is_err());
}
