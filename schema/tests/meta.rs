//! Tests that the bundled documents are valid JSON Schema 2020-12 with known keywords only.

mod official;

use acp_schema::{DIALECTS, EXTENSIONS, V1, V1_UNSTABLE, V2, V2_PREVIEW, V2_UNSTABLE};
use serde_json::Value;

/// Keywords that the bundled documents use.
const KEYWORDS: &[&str] = &[
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contentEncoding",
    "default",
    "description",
    // Of OpenAPI, as in the official documents.
    "discriminator",
    "enum",
    "format",
    "items",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "not",
    "oneOf",
    "properties",
    "required",
    "title",
    "type",
    "unevaluatedProperties",
    "x-access",
    "x-capability",
    "x-cancels",
    "x-coalesce",
    "x-content",
    "x-deserialize-default-on-error",
    "x-deserialize-default-on-null",
    "x-deserialize-skip-invalid-items",
    "x-docs-ignore",
    "x-joins",
    "x-login",
    "x-method",
    "x-retry",
    "x-scope",
    "x-sensitive",
    "x-side",
    "x-transcript",
    "x-tri-state",
    "x-version",
];

/// Returns the bundled documents, alone and with their overlays applied.
fn documents() -> Vec<(&'static str, Value)> {
    let texts = [
        ("v1.json", V1),
        ("v1.unstable.json", V1_UNSTABLE),
        ("v2.json", V2),
        ("v2.preview.json", V2_PREVIEW),
        ("v2.unstable.json", V2_UNSTABLE),
        ("extensions.json", EXTENSIONS),
    ];
    let parse = |text| serde_json::from_str(text).expect("the bundled documents are JSON");
    let alone = texts
        .into_iter()
        .chain(DIALECTS)
        .map(|(name, text)| (name, parse(text)));
    let together = official::ours().map(|document| ("with its overlay", document.value().clone()));
    alone.chain(together).collect()
}

#[test]
fn documents_are_valid_schemas() {
    for (name, document) in documents() {
        assert_eq!(
            document["$schema"], "https://json-schema.org/draft/2020-12/schema",
            "{name}"
        );
        if let Err(error) = jsonschema::meta::validate(&document) {
            panic!("{name}: {}: {error}", error.instance_path());
        }
    }
}

#[test]
fn documents_have_no_other_keywords() {
    let mut unknown = Vec::new();
    for (name, mut document) in documents() {
        if let Some(members) = document.as_object_mut() {
            // A JSON Patch is no schema; what it makes is in the documents with overlays.
            members.remove("x-patch");
        }
        walk(&document, name, &mut unknown);
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_known_keyword_is_used() {
    let texts: Vec<String> = documents()
        .iter()
        .map(|(_, value)| value.to_string())
        .collect();
    for keyword in KEYWORDS {
        let used = texts
            .iter()
            .any(|text| text.contains(&format!("\"{keyword}\":")));
        assert!(used, "{keyword}");
    }
}

fn walk(schema: &Value, at: &str, unknown: &mut Vec<String>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let at = format!("{at}/{keyword}");
        if !KEYWORDS.contains(&keyword.as_str()) {
            unknown.push(at);
            continue;
        }
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                for (name, schema) in named {
                    walk(schema, &format!("{at}/{name}"), unknown);
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    walk(schema, &format!("{at}/{index}"), unknown);
                }
            }
            ("items" | "not" | "additionalProperties" | "unevaluatedProperties", schema) => {
                walk(schema, &at, unknown);
            }
            _ => {}
        }
    }
}
