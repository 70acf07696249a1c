//! The writer against serde_json: the same bytes for every value, or an error from both.

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{encode, encode_raw};

/// Both write the same, or neither writes anything.
fn alike<T: Serialize + ?Sized>(value: &T) {
    let mut ours = b"before".to_vec();
    let written = encode(value, &mut ours);
    match serde_json::to_string(value) {
        Ok(theirs) => {
            assert_eq!(written, Ok(()), "{theirs}");
            assert_eq!(String::from_utf8(ours).unwrap(), format!("before{theirs}"));
            assert_eq!(encode_raw(&value).unwrap().get(), theirs);
        }
        Err(_) => {
            let error = written.expect_err("serde_json refuses it").to_string();
            assert!(!error.is_empty());
            assert_eq!(ours, b"before", "nothing may be left of it");
            assert!(encode_raw(&value).is_err());
        }
    }
}

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
struct Wrapper<T>(T);

#[derive(Serialize)]
struct Pair<T>(T, Option<T>);

#[derive(Serialize)]
struct Named<T> {
    first: T,
    #[serde(rename = "with \"quotes\" and \\")]
    second: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    third: Option<T>,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
enum Any<T> {
    Unit,
    #[serde(rename = "new\ntype")]
    Newtype(T),
    Tuple(T, T),
    NoTuple(),
    Struct {
        a: T,
        b: T,
    },
    NoStruct {},
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum TaggedUnion {
    Unit,
    Newtype(Named<u8>),
    Map(BTreeMap<String, u8>),
    Struct { a: u8 },
}

#[derive(Serialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Unit,
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Serialize)]
struct Flat {
    before: u8,
    #[serde(flatten)]
    inner: TaggedUnion,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

struct Shown(Vec<&'static str>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|text| f.write_str(text))
    }
}

impl Serialize for Shown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

struct Failing;

impl Serialize for Failing {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("a fault of the application"))
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn every_form_of_data() {
    alike(&());
    alike(&Unit);
    alike(&Empty {});
    alike(&(true, false, None::<u8>, Some(Some(1)), 'é', '"', "a"));
    alike(&[(); 0]);
    alike(&[[1, 2], [3, 4]]);
    alike(&Wrapper(Wrapper("x")));
    alike(&Pair(1, None));
    let named = |third| Named {
        first: Wrapper(1),
        second: None,
        third,
    };
    alike(&[named(None), named(Some(Wrapper(2)))]);
    alike(&(Any::Unit::<u8>, Any::Newtype("a"), Any::Tuple(1, 2)));
    alike(&(Any::NoTuple::<u8>(), Any::NoStruct::<u8> {}));
    alike(&Vec::<Any<u8>>::new());
    alike(&Any::Struct {
        a: vec![Any::Tuple(vec![], vec![1])],
        b: vec![Any::Unit, Any::NoStruct {}],
    });
    alike(&[
        Adjacent::Unit,
        Adjacent::Tuple(1, 2),
        Adjacent::Struct { a: 1 },
    ]);
    alike(&Bytes(b"bytes"));
    alike(&Shown(vec!["a\"", "", "\n😀", "\u{1}"]));
    alike(&(1, Failing));
}

#[test]
fn what_serde_makes_of_tags_and_flattened_parts() {
    let map = BTreeMap::from([("a\tb".to_owned(), 1)]);
    let newtype = Named {
        first: 1,
        second: Some(2),
        third: None,
    };
    for inner in [
        TaggedUnion::Unit,
        TaggedUnion::Newtype(newtype),
        TaggedUnion::Map(map),
        TaggedUnion::Struct { a: 1 },
    ] {
        alike(&inner);
        let rest = BTreeMap::from([("x".to_owned(), json!({"y": [{}, []]}))]);
        alike(&Flat {
            before: 1,
            inner,
            rest,
        });
    }
}

#[test]
fn numbers_to_their_limits() {
    alike(&(i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN));
    alike(&(u8::MAX, u16::MAX, u32::MAX, u64::MAX, u128::MAX));
    alike(&(0_u8, 9_i32, 10_u64, -1_i8, 9_u128, 10_i128, 0_i64));
    for number in [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        1e15,
        1e16,
        1e21,
        1e300,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::EPSILON,
        5e-324,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        alike(&number);
        alike(&(number as f32));
        alike(&json!({ "n": number }));
    }
}

#[test]
fn keys_that_are_no_strings() {
    alike(&BTreeMap::from([(1, 1), (-2, 2)]));
    alike(&BTreeMap::from([(u128::MAX, 1)]));
    alike(&BTreeMap::from([(true, 1), (false, 2)]));
    alike(&BTreeMap::from([('"', 1)]));
    alike(&BTreeMap::from([(Some("a"), 1)]));
    alike(&BTreeMap::from([(None::<u8>, 1)]));
    alike(&BTreeMap::from([((), 1)]));
    alike(&BTreeMap::from([((1, 2), 1)]));
    alike(&BTreeMap::from([(vec![1], 1)]));
    /// A map with one key of any type.
    struct One<K>(K);
    impl<K: Serialize> Serialize for One<K> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(&self.0, 1)])
        }
    }
    alike(&One(Wrapper(Wrapper(7))));
    alike(&One(1.5));
    alike(&One(-1e-7_f32));
    alike(&One(f64::NAN));
    alike(&One(Shown(vec!["a\n", "b"])));
    alike(&One(Unit));
    alike(&One(Empty {}));
    alike(&One(Bytes(b"a")));
    alike(&One(Any::Unit::<u8>));
    alike(&One(Any::Newtype("a")));
    alike(&One(Any::Tuple(1, 2)));
    alike(&One(json!("a value")));
    alike(&One(json!(null)));
    alike(&One(json!({})));
    for text in ["1", "\"a\"", "null", "{}"] {
        alike(&One(raw(text)));
        alike(&One(Some(Wrapper(raw(text)))));
    }
}

#[test]
fn raw_json_is_written_as_it_is() {
    for text in ["1.0", "{ \"a\" : [ 1e5 ] }", "\"\\u0061\\/\"", "null", "[]"] {
        alike(&raw(text));
        alike(&*raw(text));
        alike(&vec![Some(raw(text)), None, Some(raw(text))]);
        alike(&BTreeMap::from([("a", raw(text)), ("b", raw(text))]));
        alike(&Any::Newtype(raw(text)));
        alike(&Any::Struct {
            a: raw(text),
            b: raw(text),
        });
    }
}

#[test]
fn every_character_that_needs_an_escape_wherever_it_is() {
    for length in 0..80 {
        let plain = "é".repeat(length / 4) + &"x".repeat(length - length / 4 * 2);
        alike(&plain);
        for byte in (0..0x20).chain([b'"', b'\\', b'/', 0x7f]) {
            let special = char::from(byte);
            alike(&format!("{plain}{special}"));
            alike(&format!("{special}{plain}{special}{special}{plain}"));
        }
    }
}

proptest! {
    #[test]
    fn any_text(text in r#"[\x00-\x7f\PC"\\]{0,200}"#) {
        alike(&text);
        alike(&BTreeMap::from([(&text, &text)]));
    }

    #[test]
    fn any_number(bits in any::<u64>(), small in -1000..1000_i32) {
        alike(&(bits, bits as i64, f64::from_bits(bits), f32::from_bits(bits as u32)));
        alike(&(f64::from(small) / 64.0, f64::from(small) / 10.0));
    }

    #[test]
    fn any_tree(value in value()) {
        alike(&value);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        r#"[\x00-\x7f\PC"\\]{0,80}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((r#"[a-c\n"]{0,2}"#, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
