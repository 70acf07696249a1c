//! The reader against serde_json, which knows what JSON is.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::described::read;
use crate::json::{Json, Map};

/// Any value, read by types.
#[derive(Debug, PartialEq)]
enum Tree {
    Null,
    Boolean(bool),
    Number(f64),
    Text(String),
    List(Vec<Tree>),
    Object(Map<Tree>),
}

crate::runtime::value_union!(Tree {
    Null: () = Null,
    Boolean: bool = Boolean,
    Number: f64 = Number,
    Text: String = String,
    List: Vec<Tree> = Array,
    Object: Map<Tree> = Object,
});

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Boolean(value),
            Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(sorted(members)),
        }
    }
}

fn sorted<T: Into<Tree>>(members: impl IntoIterator<Item = (String, T)>) -> Map<Tree> {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    let tree = |(name, value): (String, T)| (name, sort(value.into()));
    members.into_iter().map(tree).collect()
}

/// A `Value` has its members in the order of their names.
fn sort(tree: Tree) -> Tree {
    match tree {
        Tree::List(items) => Tree::List(items.into_iter().map(sort).collect()),
        Tree::Object(members) => Tree::Object(sorted(members)),
        other => other,
    }
}

/// Both readers take `text` for JSON or neither does, and find the same in it.
fn alike(text: &str) {
    let theirs = serde_json::from_str::<Value>(text).ok().map(Tree::from);
    assert_eq!(read::<Tree>(text).ok().map(sort), theirs, "{text}");
    // What nobody looks into may have strings that are no text.
    let theirs = serde_json::from_str::<&RawValue>(text)
        .ok()
        .map(RawValue::get);
    let ours = read::<Json>(text).ok();
    assert_eq!(ours.as_ref().map(Json::get), theirs, "{text}");
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
fn typed_values_have_a_limited_depth_and_others_any() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    alike(&nested(127));
    assert!(read::<Tree>(&nested(129)).is_err());
    for depth in [128, 129, 100_000] {
        assert!(read::<Json>(&nested(depth)).is_ok());
        assert!(read::<Json>(&nested(depth)[1..]).is_err());
    }
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
    #[derive(Debug, PartialEq)]
    struct Pair {
        a: u8,
        b: Option<u8>,
    }
    crate::runtime::members!(Pair {
        a "a": u8 = required,
        b "b": Option<u8> = optional,
    });
    let pair = Pair { a: 1, b: None };
    assert_eq!(read::<Pair>(r#"{"c":[{}],"a":1,"b":null}"#), Ok(pair));
    for text in ["[1,2]", "null", "\"a\"", r#"{"a":1,"a":1}"#, "{}"] {
        assert!(read::<Pair>(text).is_err(), "{text}");
    }
}

#[test]
fn numbers_of_128_bits() {
    assert_eq!(
        read("340282366920938463463374607431768211455"),
        Ok(u128::MAX)
    );
    assert_eq!(
        read("-170141183460469231731687303715884105728"),
        Ok(i128::MIN)
    );
    assert!(read::<u128>("340282366920938463463374607431768211456").is_err());
    assert!(read::<i128>("-170141183460469231731687303715884105729").is_err());
    assert!(read::<u64>("18446744073709551616").is_err());
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
