//! The reader against serde_json, which knows what JSON is.

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use super::read;

/// Both readers take `text` for JSON or neither does, and find the same in it.
fn alike(text: &str) {
    let theirs = serde_json::from_str::<Value>(text).ok();
    assert_eq!(read::<Value>(text).ok(), theirs, "{text}");
    // What nobody looks into may have strings that are no text.
    let theirs = serde_json::from_str::<&RawValue>(text).ok();
    let ours = read::<Box<RawValue>>(text).ok();
    let as_text = |raw: &RawValue| raw.get().to_owned();
    assert_eq!(ours.as_deref().map(as_text), theirs.map(as_text), "{text}");
    assert_eq!(read::<IgnoredAny>(text).is_ok(), theirs.is_some(), "{text}");
}

#[test]
fn texts_with_a_twist() {
    for text in [
        "",
        " ",
        "null",
        " null\n",
        "nul",
        "nulll",
        "true false",
        "tru",
        "{",
        "}",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{}",
        "[]",
        "[[]]",
        "[{}]",
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{a:1}"#,
        r#"{1:1}"#,
        r#"{"a":1,2:1}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1,,"b":2}"#,
        r#"{"a" : [ 1 , {"b":null} ] }"#,
        "[1}",
        r#"{"a":1]"#,
        "[1]]",
        "[1],",
        "0",
        "-0",
        "-0.0",
        "00",
        "01",
        "-",
        "-a",
        "1.",
        ".5",
        "1.5",
        "1e",
        "1e+",
        "1E-5",
        "1e5",
        "+1",
        "1x",
        "NaN",
        "1e999",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        r#"""#,
        r#""a"#,
        r#""a""#,
        r#""\"#,
        r#""\"""#,
        r#""\x""#,
        r#""\u00e""#,
        r#""\u00e9""#,
        r#""\uD83D\uDE00""#,
        r#""\uD83D""#,
        r#""\uDE00\uD83D""#,
        r#""\uD83Dx""#,
        r#""\uD83D\n""#,
        r#""\u+123""#,
        "\"\u{1}\"",
        "\"\\n\u{1}\"",
        "\"\t\"",
        "\"\u{7f}é😀\"",
        r#""\b\f\n\r\t\/\\\"""#,
        "\u{feff}1",
        "1\u{a0}",
        r#"{"a\nb":1,"a":{"c":[[],{}]}}"#,
    ] {
        alike(text);
    }
}

#[test]
fn long_strings_with_escapes_and_characters_of_any_length() {
    for width in 0..70 {
        for piece in ["x", "é", "€x", "😀"] {
            let line = piece.repeat(width);
            for end in ["\n", "\\\"", "\\", "\u{1}", "\u{1f600}\t"] {
                alike(&Value::from(format!("{line}{end}").repeat(9)).to_string());
            }
            // Escapes of more than a character each, and what is no string.
            let escaped = format!(r"{line}\u00e9\ud83d\ude00\/\b\f\r").repeat(9);
            alike(&format!("\"{escaped}\""));
            alike(&format!("\"{escaped}"));
            alike(&format!("\"{escaped}\\"));
            alike(&format!("\"{escaped}\u{1}\""));
            alike(&format!("\"{escaped}\u{1}"));
            alike(&format!("\"{escaped}\\x\""));
        }
    }
}

#[test]
fn a_string_holds_little_more_memory_than_its_text() {
    let long = format!("{}\n", "x".repeat(60)).repeat(2000);
    for text in ["\n", &long[..600], &long[..40_000], &long] {
        for beside in [0, 1_000_000] {
            let json = Value::from(vec![text, &"y".repeat(beside)]).to_string();
            let read = read::<Vec<String>>(&json).unwrap();
            let allowed = (2 * text.len()).max(text.len() + 256);
            assert!(read[0].capacity() <= allowed, "{}", read[0].capacity());
        }
    }
}

#[test]
fn what_is_too_deep_is_refused() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    alike(&nested(127));
    assert!(read::<Value>(&nested(129)).is_err());
    assert!(read::<IgnoredAny>(&nested(129)).is_err());
    assert!(read::<IgnoredAny>(&nested(100_000)).is_err());
}

#[test]
fn an_integer_is_one_by_its_value() {
    for (text, number) in [("7", 7), ("7.0", 7), ("-7.00", -7), ("-0", 0), ("-0.0", 0)] {
        assert_eq!(read::<i64>(text), Ok(number), "{text}");
    }
    assert_eq!(read::<u64>("18446744073709551615"), Ok(u64::MAX));
    assert_eq!(read::<u64>("-0"), Ok(0));
    for text in ["1.5", "-1", "256", "256.0", "\"1\"", "null", "[1]", "true"] {
        assert!(read::<u8>(text).is_err(), "{text}");
    }
    for (text, number) in [
        ("1e2", 100),
        ("-1.50E+1", -15),
        ("12300e-2", 123),
        ("0.0120e3", 12),
        ("0e-7", 0),
        ("0.0e99999999999999999999", 0),
        ("-0e99", 0),
        ("9.223372036854775807e18", i64::MAX),
        ("-92233720368547758080e-1", i64::MIN),
    ] {
        assert_eq!(read::<i64>(text), Ok(number), "{text}");
    }
    assert_eq!(read::<u64>("1844674407370955161.50e1"), Ok(u64::MAX));
    for text in [
        "1e-1",
        "15e-2",
        "1e19",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "9.223372036854775808e18",
        "-9.223372036854775809e18",
        "1e",
        "1e2x",
    ] {
        assert!(read::<i64>(text).is_err(), "{text}");
    }
    assert_eq!(read::<f64>("1"), Ok(1.0));
    assert_eq!(read::<f64>("1e-3"), Ok(0.001));
}

#[test]
fn an_object_is_no_list_of_its_values() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: u8,
        b: Option<u8>,
    }
    let pair = Pair { a: 1, b: None };
    assert_eq!(read::<Pair>(r#"{"c":[{}],"a":1,"b":null}"#), Ok(pair));
    for text in ["[1,2]", "null", "\"a\"", r#"{"a":1,"a":1}"#, "{}"] {
        assert!(read::<Pair>(text).is_err(), "{text}");
    }
}

/// Both readers take `text` for a `T` and find the same, or neither does.
fn alike_as<T: DeserializeOwned + PartialEq + fmt::Debug>(text: &str) {
    let theirs = serde_json::from_str::<T>(text).ok();
    assert_eq!(read::<T>(text).ok(), theirs, "{text}");
}

#[test]
fn data_without_content_is_null() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Unit;
    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapper(Option<Unit>);
    for text in [
        "null", " null ", "nul", "{}", "[]", "\"\"", "0", "false", "",
    ] {
        alike_as::<()>(text);
        alike_as::<Unit>(text);
        alike_as::<Wrapper>(text);
    }
}

/// Keys that are numbers, booleans or names of variants stand in strings.
#[test]
fn keys_are_strings_whatever_they_are_read_as() {
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    struct Wrapper(String);
    let texts = [
        "{}",
        r#"{"a":1}"#,
        r#"{"1":1,"2":2}"#,
        r#"{"true":1}"#,
        r#"{"\n":1}"#,
    ];
    for text in texts {
        alike_as::<BTreeMap<String, u8>>(text);
        alike_as::<BTreeMap<Wrapper, u8>>(text);
        alike_as::<BTreeMap<Option<String>, u8>>(text);
        alike_as::<BTreeMap<char, u8>>(text);
    }
    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    enum Name {
        #[serde(rename = "a")]
        A,
    }
    for text in texts.into_iter().chain([
        r#"{"-1":1}"#,
        r#"{"01":1}"#,
        r#"{"1 ":1}"#,
        r#"{" 1":1}"#,
        r#"{"+1":1}"#,
        r#"{"":1}"#,
        r#"{"256":1}"#,
        r#"{"false":1}"#,
        r#"{"null":1}"#,
    ]) {
        alike_as::<BTreeMap<u8, u8>>(text);
        alike_as::<BTreeMap<i64, u8>>(text);
        alike_as::<BTreeMap<u128, u8>>(text);
        alike_as::<BTreeMap<Option<i8>, u8>>(text);
        alike_as::<BTreeMap<bool, u8>>(text);
        alike_as::<BTreeMap<Name, u8>>(text);
        alike_as::<BTreeMap<(), u8>>(text);
    }
}

#[test]
fn enums_have_the_forms_that_serde_json_gives_them() {
    #[derive(Debug, PartialEq, Deserialize)]
    enum Any {
        Unit,
        Newtype(Option<u8>),
        Tuple(u8, bool),
        Struct { a: u8 },
    }
    for text in [
        r#""Unit""#,
        r#" "Un\u0069t" "#,
        r#"{"Unit":null}"#,
        r#"{"Unit":1}"#,
        r#"{}"#,
        r#"{"Unit"}"#,
        r#"{"Unit":null,"Unit":null}"#,
        r#"{"Unit":null,}"#,
        r#"{"Newtype":1}"#,
        r#"{ "Newtype" : null }"#,
        r#""Newtype""#,
        r#"{"Newtype":256}"#,
        r#"{"Tuple":[1,true]}"#,
        r#"{"Tuple":[1]}"#,
        r#"{"Tuple":[1,true,2]}"#,
        r#""Tuple""#,
        r#"{"Struct":{"a":1}}"#,
        r#"{"Struct":{}}"#,
        r#""Struct""#,
        "5",
        "[]",
        "null",
        "",
        "{",
        r#""Other""#,
    ] {
        alike_as::<Any>(text);
        alike_as::<Vec<Any>>(&format!("[{text}]"));
        alike_as::<Option<Any>>(text);
    }
}

#[test]
fn numbers_of_128_bits() {
    for text in [
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211456",
        "-170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105729",
        "18446744073709551616",
        "7",
        "-7",
    ] {
        alike_as::<u128>(text);
        alike_as::<i128>(text);
        alike_as::<u64>(text);
    }
    assert_eq!(read::<u128>("1e30"), Ok(10_u128.pow(30)));
}

proptest! {
    #[test]
    fn trees_are_read_again(value in value()) {
        alike(&value.to_string());
        alike(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }

    /// Valid texts with one character put in, taken out or replaced.
    #[test]
    fn damaged_texts_are_refused_alike(
        value in value(),
        at in any::<prop::sample::Index>(),
        by in r#"[\PC\x00-\x20"\\{}\[\]:,0-9eu.-]{0,2}"#,
        length in 0..2_usize,
    ) {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let at = at.index(text.len());
        let end = (at + length).min(text.len());
        text.splice(at..end, by.chars());
        alike(&text.into_iter().collect::<String>());
    }
}

/// Values of every kind, with strings that need escapes.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Numbers of which serde_json, too, finds the nearest.
        (-1_000_000..1_000_000_i32).prop_map(|n| Value::from(f64::from(n) / 64.0)),
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
