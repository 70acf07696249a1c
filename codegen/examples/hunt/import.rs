//! Brings a JSON Schema of any draft into the form of a document: definitions in `$defs`, with
//! names that Rust can have, and references to them.

use std::collections::{BTreeMap, BTreeSet};

use heck::ToPascalCase as _;
use serde_json::{Map, Value, json};

/// Where definitions stand.
const DEFINITIONS: [&str; 4] = ["/$defs", "/definitions", "/components/schemas", "/schemas"];

/// Keywords whose value is data.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords whose members are named by the document.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// Returns the document of a schema.
pub(crate) fn import(schema: &Value) -> Value {
    let mut names = Names::default();
    for place in DEFINITIONS {
        let found = schema.pointer(place).and_then(Value::as_object);
        for name in found.into_iter().flat_map(Map::keys) {
            names.name(&format!("{place}/{}", escaped(name)), name);
        }
    }
    let mut root = schema.clone();
    if let Some(keywords) = root.as_object_mut() {
        for place in DEFINITIONS {
            let first = place.split('/').nth(1).unwrap_or_default();
            keywords.shift_remove(first);
        }
    }
    if root
        .as_object()
        .is_some_and(|root| root.keys().any(|key| key != "$ref" && is_form(key)))
    {
        names.name("", "Root");
    }
    // A reference into a definition makes a definition of what it refers to.
    let mut defs = Map::new();
    while let Some((pointer, name)) = names.pending.pop() {
        let target = match pointer.is_empty() {
            true => Some(&root),
            false => schema.pointer(&pointer),
        };
        let converted = convert(target.unwrap_or(&Value::Bool(true)), schema, &mut names);
        defs.insert(name, converted);
    }
    defs.sort_keys();
    json!({ "$defs": defs })
}

fn is_form(keyword: &str) -> bool {
    matches!(
        keyword,
        "type" | "properties" | "oneOf" | "anyOf" | "allOf" | "additionalProperties" | "items"
    )
}

/// The names of definitions by their place.
#[derive(Default)]
struct Names {
    by_pointer: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// Places and names of definitions that are not converted yet.
    pending: Vec<(String, String)>,
}

impl Names {
    fn name(&mut self, pointer: &str, wanted: &str) -> String {
        if let Some(known) = self.by_pointer.get(pointer) {
            return known.clone();
        }
        let letters = wanted.replace(|c: char| !c.is_ascii_alphanumeric(), " ");
        let base = match letters.to_pascal_case() {
            name if name.starts_with(|first: char| first.is_ascii_uppercase()) => name,
            name => format!("N{name}"),
        };
        let numbered = (2..).map(|number| format!("{base}N{number}"));
        let free = std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| !self.taken.contains(name));
        let name = free.unwrap_or(base);
        self.taken.insert(name.clone());
        self.by_pointer.insert(pointer.to_owned(), name.clone());
        self.pending.push((pointer.to_owned(), name.clone()));
        name
    }
}

fn convert(value: &Value, document: &Value, names: &mut Names) -> Value {
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| convert(item, document, names));
            items.collect()
        }
        Value::Object(keywords) => {
            let mut converted = Map::new();
            for (keyword, value) in keywords {
                let value = match (keyword.as_str(), value) {
                    ("$ref", Value::String(target)) => match resolve(target, document, names) {
                        Some(name) => format!("#/$defs/{name}").into(),
                        None => value.clone(),
                    },
                    (key, _) if key.starts_with("x-") || key.starts_with("x_") => continue,
                    ("$schema" | "$id" | "id" | "$anchor" | "definitions" | "$defs", _) => continue,
                    (key, _) if DATA.contains(&key) => value.clone(),
                    (key, Value::Object(named)) if NAMED.contains(&key) => {
                        let mut members = Map::new();
                        for (name, schema) in named {
                            members.insert(name.clone(), convert(schema, document, names));
                        }
                        members.into()
                    }
                    _ => convert(value, document, names),
                };
                converted.insert(keyword.clone(), value);
            }
            converted.into()
        }
        other => other.clone(),
    }
}

fn resolve(target: &str, document: &Value, names: &mut Names) -> Option<String> {
    let pointer = target.strip_prefix('#')?.replace("%24", "$");
    if !pointer.is_empty() {
        document.pointer(&pointer)?;
    }
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let wanted = if pointer.is_empty() { "Root" } else { last };
    Some(names.name(&pointer, wanted))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
