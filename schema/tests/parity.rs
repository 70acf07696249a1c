//! Compares the bundled documents with the schemas of the official types.
//!
//! Every definition of both versions, overlays included, is compared with the schema
//! that the official type derives: properties, types, required, constants,
//! bounds, formats, leniency markers, sides and methods. Descriptions and our own
//! keywords are not compared.

mod official;

use serde_json::{Map, Value};

use self::official::{Version, is_envelope};

/// Known differences: JSON Pointer and reason. An unused row is a failure.
const KNOWN: &[(&str, &str)] = &[];

#[test]
fn every_definition_has_the_official_facts() {
    let mut differences = Vec::new();
    for version in official::versions() {
        differences.extend(differences_of(&version));
    }
    let is_at = |difference: &str, pointer: &str| difference.split(": ").next() == Some(pointer);
    let unknown: Vec<_> = differences
        .iter()
        .filter(|difference| !KNOWN.iter().any(|(pointer, _)| is_at(difference, pointer)))
        .collect();
    assert!(
        unknown.is_empty(),
        "{} differences:\n{unknown:#?}",
        unknown.len()
    );
    for (pointer, reason) in KNOWN {
        let used = differences.iter().any(|one| is_at(one, pointer));
        assert!(
            used,
            "{pointer} ({reason}) does not differ any more; remove the row"
        );
    }
}

fn differences_of(version: &Version) -> Vec<String> {
    let mut found = Vec::new();
    let Version { name, ours, theirs } = version;
    for (definition, schema) in ours.defs().filter(|(_, schema)| !is_envelope(schema)) {
        let at = format!("/{name}/{definition}");
        match theirs.get(definition) {
            Some(official) => compare(&at, &facts(schema), &facts(official), &mut found),
            None => found.push(format!("{at}: no official type has this name")),
        }
    }
    for (definition, schema) in theirs.iter().filter(|(_, schema)| !is_envelope(schema)) {
        if ours.def(definition).is_none() {
            let missing = format!("missing; the official schema is {schema}");
            found.push(format!("/{name}/{definition}: {missing}"));
        }
    }
    found
}

fn lone_reference(all: &[Value]) -> Option<&Value> {
    match all {
        [Value::Object(only)] if only.len() == 1 => only.get("$ref"),
        _ => None,
    }
}

/// Returns a schema without descriptions and without our own keywords.
fn facts(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut kept = Map::new();
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("description" | "title", Value::String(_))
                    | ("x-cancels" | "x-coalesce" | "x-sensitive" | "x-tri-state", _)
                    | (
                        "x-scope" | "x-access" | "x-retry" | "x-joins" | "x-login" | "x-capability"
                        | "x-content",
                        _,
                    ) => {}
                    // A reference beside other keywords may be wrapped.
                    ("allOf", Value::Array(all)) if lone_reference(all).is_some() => {
                        let target = lone_reference(all).unwrap_or(&Value::Null);
                        kept.insert("$ref".into(), target.clone());
                    }
                    // Names of properties are no keywords.
                    ("properties", Value::Object(properties)) => {
                        let properties: Map<_, _> = properties
                            .iter()
                            .map(|(name, schema)| (name.clone(), facts(schema)))
                            .collect();
                        kept.insert(key.clone(), Value::Object(properties));
                    }
                    ("default" | "const" | "enum", _) => {
                        kept.insert(key.clone(), member.clone());
                    }
                    _ => {
                        kept.insert(key.clone(), facts(member));
                    }
                }
            }
            // A schema that says nothing is `true` in other words.
            if kept.is_empty() {
                Value::Bool(true)
            } else {
                Value::Object(kept)
            }
        }
        Value::Array(items) => Value::Array(items.iter().map(facts).collect()),
        other => other.clone(),
    }
}

fn compare(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, our) in ours {
                match theirs.get(key) {
                    Some(their) => compare(&format!("{at}/{key}"), our, their, found),
                    None => found.push(format!("{at}/{key}: only ours: {our}")),
                }
            }
            for (key, their) in theirs {
                if !ours.contains_key(key) {
                    found.push(format!("{at}/{key}: only official: {their}"));
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{at}/{index}"), our, their, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{at}: ours {ours}, official {theirs}")),
    }
}
