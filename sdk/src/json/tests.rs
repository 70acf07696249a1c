//! Tests of the values that generated types are made of.

use serde_json::json;

use super::{Json, Map, Meta, UnknownVariant};

#[test]
fn json_is_equal_by_text() {
    let number: Json = serde_json::from_str("1.0").unwrap();
    assert_eq!(number.get(), "1.0");
    assert_ne!(number, Json::from(json!(1)));
    assert_eq!(number.parse::<f64>().unwrap(), 1.0);
    assert_eq!(
        Json::from(&json!({ "a": [null] })).to_value(),
        Some(json!({ "a": [null] }))
    );
    assert!(Json::new(&()).unwrap().is_null());
}

#[test]
fn json_too_deep_for_a_tree_is_still_text() {
    let text = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(deep.to_value(), None);
    assert_eq!(deep.to_string(), text);
}

#[test]
fn what_has_no_json_form_is_refused() {
    let keys_are_lists = std::collections::BTreeMap::from([(vec![1], 1)]);
    assert!(Json::new(&keys_are_lists).is_err());
    let mut meta = Meta::new();
    assert!(meta.insert("k", &keys_are_lists).is_err());
    assert_eq!(meta, Meta::new());
}

#[test]
fn setting_a_member_of_meta_keeps_the_text_of_the_others() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let text =
        format!(r#"{{ "z" :1e400,"a":1.10, "deep":{deep},"\u0061b":12345678901234567890123 }}"#);
    let mut meta: Meta = serde_json::from_str(&text).unwrap();
    meta.insert("new", &[1, 2]).unwrap();
    let expected = format!("{},\"new\":[1,2]}}", text.strip_suffix(" }").unwrap());
    assert_eq!(meta.as_str(), expected);
    meta.insert("a", "x").unwrap();
    meta.insert("ab", &7).unwrap();
    let expected = expected
        .replace("1.10", "\"x\"")
        .replace("12345678901234567890123", "7");
    assert_eq!(meta.as_str(), expected);
    assert_eq!(meta.get::<Vec<u8>>("new"), Some(vec![1, 2]));
    // Of two members the last counts.
    let mut twice: Meta = serde_json::from_str(r#"{"a":1,"a":2}"#).unwrap();
    twice.insert("a", &3).unwrap();
    assert_eq!(twice.as_str(), r#"{"a":1,"a":3}"#);
    assert_eq!(Meta::new().with("k\n", &true).as_str(), r#"{"k\n":true}"#);
}

#[test]
fn meta_is_an_object() {
    assert!(serde_json::from_str::<Meta>("[]").is_err());
    assert!(serde_json::from_str::<Meta>("null").is_err());
    let meta: Meta = serde_json::from_str(r#"{"a":1,"a":2}"#).unwrap();
    assert_eq!(meta.get::<u8>("a"), Some(2));
    assert_eq!(Meta::new().as_str(), "{}");
    let map = json!({ "a": { "b": 1 } }).as_object().unwrap().clone();
    assert_eq!(Meta::from(map.clone()).to_map(), map);
    assert_eq!(Meta::new().with("k", "v").as_str(), r#"{"k":"v"}"#);
}

#[test]
fn a_map_keeps_order_and_the_last_of_equal_names() {
    let map: Map<u8> = serde_json::from_str(r#"{"b":1,"a":2,"b":3}"#).unwrap();
    assert_eq!(map.iter().collect::<Vec<_>>(), [("a", &2), ("b", &3)]);
    let mut map = Map::from([("b", 1), ("a", 2)]);
    assert_eq!(map.insert("b", 5), Some(1));
    assert_eq!(map.insert("c", 6), None);
    assert_eq!(
        serde_json::to_string(&map).unwrap(),
        r#"{"b":5,"a":2,"c":6}"#
    );
    assert_eq!((map.len(), map.get("c"), map.get("d")), (3, Some(&6), None));
}

#[test]
fn an_unknown_variant_made_by_hand() {
    let fields = vec![
        ("type".to_owned(), json!("x").into()),
        ("n".to_owned(), json!(1).into()),
    ];
    let unknown = UnknownVariant::new("x", fields);
    assert_eq!(
        serde_json::to_string(&unknown).unwrap(),
        r#"{"type":"x","n":1}"#
    );
}
