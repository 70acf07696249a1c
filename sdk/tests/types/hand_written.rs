//! Types that users write by hand and derive serde for, as params and results of methods.

use std::collections::BTreeMap;
use std::fmt::Debug;

use acp_sdk::runtime::{Described, TypeDescriptor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DeserializeOwned, error, valid};

#[derive(Debug, PartialEq, Deserialize, Serialize)]
enum Command {
    Stop,
    Say(String),
    Move(i64, f64),
    Turn { degrees: u16, left: Option<bool> },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
enum Key {
    First,
    Second,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Nothing;

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Meters(f64);

#[derive(Debug, PartialEq, Deserialize, Serialize)]
struct Everything {
    commands: Vec<Command>,
    nothing: Nothing,
    length: Meters,
    letter: char,
    small: i128,
    large: u128,
    by_number: BTreeMap<u8, Command>,
    by_sign: BTreeMap<i64, bool>,
    by_flag: BTreeMap<bool, ()>,
    by_key: BTreeMap<Key, u8>,
    pair: (u8, Option<String>),
}

#[derive(Debug, Deserialize, Serialize)]
struct Verbatim {
    raw: Box<RawValue>,
}

/// Bytes, as the crate `serde_bytes` reads and writes them.
#[derive(Debug, PartialEq)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}

macro_rules! described {
    ($($ty:ty),*) => {
        $(impl Described for $ty {
            fn descriptor() -> &'static TypeDescriptor {
                &TypeDescriptor::Any
            }
        })*
    };
}

described!(Command, Everything, Nothing, Verbatim, Bytes);

/// The SDK reads `text` as serde_json does.
fn alike<T: DeserializeOwned + Described + PartialEq + Debug>(text: &str) {
    let expected: T = serde_json::from_str(text).expect("serde_json takes the text");
    assert_eq!(valid::<T>(text), expected, "{text}");
}

#[test]
fn every_form_of_an_enum_is_read() {
    for text in [
        r#""Stop""#,
        r#"{"Stop":null}"#,
        r#" { "Say" : "a\nb" } "#,
        r#"{"Move":[-1,0.5]}"#,
        r#"{"Turn":{"left":true,"degrees":90}}"#,
        r#"{"Turn":{"degrees":1}}"#,
    ] {
        alike::<Command>(text);
    }
}

#[test]
fn every_serde_type_with_a_json_form_is_read() {
    alike::<Everything>(
        r#"{"commands":["Stop",{"Say":"x"},{"Move":[1,2.5]},{"Turn":{"degrees":3}}],
            "nothing":null,"length":2.5,"letter":"é",
            "small":-170141183460469231731687303715884105728,
            "large":340282366920938463463374607431768211455,
            "by_number":{"7":"Stop"},"by_sign":{"-5":true},"by_flag":{"true":null},
            "by_key":{"First":1,"Second":2},"pair":[1,null]}"#,
    );
    alike::<Bytes>(r#""ab\u00e9""#);
    alike::<Bytes>("[1,2,255]");
    alike::<Nothing>("null");
    assert_eq!(
        valid::<Verbatim>(r#"{"raw": {"n":1.00} }"#).raw.get(),
        r#"{"n":1.00}"#
    );
}

#[test]
fn an_error_names_the_place_and_the_fault() {
    for (text, path, message) in [
        (
            r#""Jump""#,
            "",
            "unknown variant `Jump`, expected one of `Stop`, `Say`, `Move`, `Turn`",
        ),
        (
            r#"{"Say":5}"#,
            "/Say",
            "invalid type: integer `5`, expected a string",
        ),
        (
            r#"{"Move":[1]}"#,
            "/Move",
            "invalid length 1, expected tuple variant Command::Move with 2 elements",
        ),
        (
            r#"{"Turn":{"left":true}}"#,
            "/Turn",
            "missing field `degrees`",
        ),
        (
            r#"{"Turn":{"degrees":[1]}}"#,
            "/Turn/degrees",
            "invalid type: sequence, expected u16",
        ),
        ("7", "", "expected value at line 1 column 1"),
    ] {
        let error = error::<Command>(text);
        assert_eq!((&*error.path, &*error.message), (path, message), "{text}");
    }
    let error = error::<Everything>(r#"{"commands":["Stop",{"Turn":{"degrees":-1}}]}"#);
    assert_eq!(
        error.to_string(),
        "/commands/1/Turn/degrees: invalid value: integer `-1`, expected u16"
    );
}

#[test]
fn depth_is_still_limited() {
    #[derive(Debug, Deserialize)]
    struct Tree(#[allow(dead_code, reason = "only its depth counts")] Vec<Tree>);
    impl Described for Tree {
        fn descriptor() -> &'static TypeDescriptor {
            &TypeDescriptor::Any
        }
    }
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    valid::<Tree>(&nested(120));
    let error = error::<Tree>(&nested(200)).message;
    assert!(error.starts_with("recursion limit exceeded"), "{error}");
}
