//! The vectors of a small document, one by one.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_codegen::vectors::{Expect, Vector, Vectors, vectors};
use acp_schema::Document;
use serde_json::{Value, json};

/// The vectors of the definition `name` as JSON.
fn of(definitions: &Value, name: &str) -> Value {
    let text = json!({ "$defs": definitions }).to_string();
    let document = Document::parse("test.json", &text).unwrap();
    let all = vectors(&document).unwrap();
    let found = all.iter().find(|set| set.definition == name);
    found.map(Vectors::to_json).unwrap()
}

/// The vectors of one kind as pairs of value and what is expected.
fn pairs(vectors: &Value, kind: &str, expected: &str) -> Vec<(Value, Value)> {
    let pair = |vector: &Value| (vector["value"].clone(), vector[expected].clone());
    vectors[kind].as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn a_number_at_its_boundaries_and_beyond() {
    let definitions =
        json!({ "Port": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 100 } });
    let port = of(&definitions, "Port");
    let valid: Vec<Value> = pairs(&port, "valid", "means")
        .into_iter()
        .map(|pair| pair.0)
        .collect();
    assert_eq!(valid, [json!(0), json!(100), json!(7)]);
    // The type takes it, though the schema does not.
    assert_eq!(
        pairs(&port, "lenient", "dropped"),
        [(json!(101), json!([]))]
    );
    let invalid: Vec<Value> = pairs(&port, "invalid", "paths")
        .into_iter()
        .map(|pair| pair.0)
        .collect();
    assert_eq!(
        invalid,
        [
            json!(null),
            json!(true),
            json!(0.5),
            json!("text"),
            json!([]),
            json!({}),
            json!(-1),
            json!(256)
        ]
    );
}

#[test]
fn members_missing_wrong_and_tolerated() {
    let definitions = json!({ "Person": {
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "age": { "type": ["boolean", "null"], "x-deserialize-default-on-error": true },
        },
        "required": ["name"],
    } });
    let person = of(&definitions, "Person");
    let invalid = pairs(&person, "invalid", "paths");
    assert!(
        invalid.contains(&(json!({}), json!(["/name"]))),
        "{invalid:?}"
    );
    assert!(
        invalid.contains(&(json!({ "name": 7 }), json!(["/name"]))),
        "{invalid:?}"
    );
    let lenient = pairs(&person, "lenient", "means");
    let wrong = (
        json!({ "name": "text", "age": "text" }),
        json!({ "name": "text" }),
    );
    assert!(lenient.contains(&wrong), "{lenient:?}");
    let valid = pairs(&person, "valid", "means");
    let null = (
        json!({ "name": "text", "age": null }),
        json!({ "name": "text" }),
    );
    let full = json!({ "name": "a \"long\"\ttext\n\u{e9}\u{1f600}\\", "age": true });
    assert!(valid.contains(&null), "{valid:?}");
    assert!(valid.contains(&(full, Value::Null)), "{valid:?}");
}

#[test]
fn every_member_of_a_union_and_one_of_a_later_version() {
    let branch = |tag: &str, member: &str| {
        json!({
            "type": "object",
            "properties": { "kind": { "type": "string", "const": tag }, member: { "type": "string" } },
            "required": ["kind", member],
        })
    };
    let definitions = json!({ "Shape": { "oneOf": [branch("a", "x"), branch("b", "y")] } });
    let shape = of(&definitions, "Shape");
    let valid = pairs(&shape, "valid", "means");
    for value in [
        json!({ "kind": "a", "x": "text" }),
        json!({ "kind": "b", "y": "text" }),
    ] {
        assert!(valid.contains(&(value, Value::Null)), "{valid:?}");
    }
    let later = json!({ "kind": "_later", "x": "text", "more": [{ "any": null }] });
    let lenient = pairs(&shape, "lenient", "means");
    assert!(lenient.contains(&(later, Value::Null)), "{lenient:?}");
    let invalid = pairs(&shape, "invalid", "paths");
    let mixed = (json!({ "kind": "b" }), json!(["/y"]));
    assert!(invalid.contains(&mixed), "{invalid:?}");
    assert!(
        invalid.contains(&(json!({ "y": "text" }), json!(["/kind"]))),
        "{invalid:?}"
    );
}

#[test]
fn a_document_that_cannot_be_generated_has_no_vectors() {
    let document =
        Document::parse("t.json", r##"{"$defs": {"A": {"$ref": "#/$defs/B"}}}"##).unwrap();
    assert!(vectors(&document).is_err());
}

/// With a step for each word and vector this would take minutes.
#[test]
fn an_enum_of_many_words_has_a_vector_for_each() {
    const WORDS: usize = 20_000;
    let words: Vec<String> = (0..WORDS).map(|index| format!("w{index}")).collect();
    let text = json!({ "$defs": {
        "Word": { "type": "string", "enum": words },
        "Entry": {
            "type": "object",
            "properties": { "word": { "type": "string", "enum": words } },
            "required": ["word"],
        },
    } });
    let document = Document::parse("words.json", &text.to_string()).unwrap();
    let valid = |vectors: &Vectors| {
        let of_valid = |vector: &&Vector| matches!(vector.expect, Expect::Valid { .. });
        vectors.vectors.iter().filter(of_valid).count()
    };
    let counts: Vec<usize> = vectors(&document).unwrap().iter().map(valid).collect();
    assert!(counts.iter().all(|count| *count >= WORDS), "{counts:?}");
}
