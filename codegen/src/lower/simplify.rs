//! Rewrites schemas of other forms to those that the other passes know.
//!
//! A rewritten schema accepts all values of the original, so that none is lost, and may accept
//! more: constraints on values have no Rust type.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Lowerer;
use super::schema::{is_any, nullable, target, text_values};
use crate::Error;

/// Keywords that say which kind of value a schema accepts.
const FORMS: [&str; 12] = [
    "type",
    "enum",
    "const",
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
];

/// The kinds of value that some keywords are about.
const BY_KIND: [(&str, &str); 8] = [
    ("object", "properties"),
    ("object", "required"),
    ("object", "additionalProperties"),
    ("object", "patternProperties"),
    ("object", "unevaluatedProperties"),
    ("array", "items"),
    ("array", "prefixItems"),
    ("integer", "format"),
];

/// The deepest nesting of `allOf` that is followed.
const DEPTH: usize = 32;

impl Lowerer<'_> {
    /// Rewrites a schema to the forms that `shape` and `value` know.
    ///
    /// # Errors
    /// Fails when an `allOf` has no Rust type, or no value is valid.
    pub(super) fn simplified<'s>(
        &self,
        at: &str,
        schema: &'s Value,
    ) -> Result<Cow<'s, Value>, Error> {
        let never = || {
            Error::unsupported(
                at,
                "no value is valid here",
                "remove the schema, or allow a value",
            )
        };
        let Some(keywords) = schema.as_object() else {
            return match schema {
                Value::Bool(false) => Err(never()),
                _ => Ok(Cow::Borrowed(schema)),
            };
        };
        let mut schema = Cow::Borrowed(schema);
        if is_composed(keywords) {
            schema = Cow::Owned(self.merged(at, keywords, DEPTH)?);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = schema.get(keyword).and_then(Value::as_array);
            if branches.is_some_and(|branches| !branches.iter().any(has_form)) {
                without(&mut schema, keyword);
            }
        }
        if let Some(constants) = constants(&schema) {
            if constants.is_empty() {
                return Err(never());
            }
            if text_values(&schema).is_none() && nullable(&schema).is_none() {
                let kind = schema.get("type").cloned().or_else(|| kind(&constants));
                without(&mut schema, "enum");
                without(&mut schema, "const");
                if let Some(kind) = kind {
                    schema.to_mut()["type"] = kind;
                }
            }
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) if nullable(&schema).is_none() => {
                schema = Cow::Owned(by_kind(&schema, kinds));
            }
            None if ["properties", "additionalProperties", "patternProperties"]
                .iter()
                .any(|keyword| schema.get(keyword).is_some()) =>
            {
                schema.to_mut()["type"] = "object".into();
            }
            None if schema.get("items").is_some() || schema.get("prefixItems").is_some() => {
                schema.to_mut()["type"] = "array".into();
            }
            _ => {}
        }
        // Items whose type depends on their position.
        if schema.get("prefixItems").is_some() || schema.get("items").is_some_and(Value::is_array) {
            without(&mut schema, "prefixItems");
            schema.to_mut()["items"] = Value::Bool(true);
        }
        Ok(schema)
    }

    /// Merges the parts of an `allOf`, and what stands beside it, into one schema.
    fn merged(
        &self,
        at: &str,
        keywords: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, Error> {
        let unsupported = |message: &str| {
            Error::unsupported(
                at,
                message,
                "compose objects only, or define one schema with all members",
            )
        };
        if depth == 0 {
            return Err(unsupported("`allOf` nests too deeply"));
        }
        let mut merged = keywords.clone();
        let own = [merged.shift_remove("allOf"), merged.shift_remove("$ref")];
        let [all, target] = own;
        let (properties, required) = (
            merged.shift_remove("properties"),
            merged.shift_remove("required"),
        );
        let target = target.map(|target| json!({ "$ref": target }));
        let mut parts: Vec<Value> = target.into_iter().collect();
        parts.extend(
            all.and_then(|all| all.as_array().cloned())
                .unwrap_or_default(),
        );
        let own = [("properties", properties), ("required", required)];
        let own = own
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        parts.push(Value::Object(own.collect()));

        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        for part in parts {
            let mut part = self.resolved(&part);
            if let Some(keywords) = part.as_object().filter(|keywords| is_composed(keywords)) {
                part = self.merged(at, keywords, depth - 1)?;
            }
            let Value::Object(part) = part else { continue };
            for (keyword, value) in part {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(members)) => {
                        for (name, member) in members {
                            let is_new = !properties.contains_key(&name);
                            if is_new || !is_any(&member) {
                                properties.insert(name, member);
                            }
                        }
                    }
                    ("required", Value::Array(names)) => required.extend(names),
                    // A closed part does not close the whole, which has members beside it.
                    ("additionalProperties", Value::Bool(false)) => {}
                    ("additionalProperties", _) => {
                        merged.insert(keyword, Value::Bool(true));
                    }
                    ("description" | "title" | "default" | "examples" | "$comment", value) => {
                        merged.entry(keyword).or_insert(value);
                    }
                    (other, value) if FORMS.contains(&other) => match merged.get(other) {
                        Some(known) if *known != value => {
                            return Err(unsupported(&format!(
                                "the parts of an `allOf` differ in `{other}`"
                            )));
                        }
                        _ => {
                            merged.insert(keyword, value);
                        }
                    },
                    // `x-` keywords and constraints of a part.
                    (_, value) => {
                        merged.entry(keyword).or_insert(value);
                    }
                }
            }
        }
        required.retain(|name| {
            name.as_str()
                .is_some_and(|name| properties.contains_key(name))
        });
        if !properties.is_empty() {
            merged.insert("properties".into(), properties.into());
            merged.insert("required".into(), required.into());
        }
        Ok(Value::Object(merged))
    }

    /// Returns the schema that a reference leads to, or the schema itself.
    pub(super) fn resolved(&self, schema: &Value) -> Value {
        let mut schema = schema;
        // Cycles of references have no value, which the document's check has refused.
        for _ in 0..DEPTH {
            let name = target(schema).and_then(|target| target.strip_prefix("#/$defs/"));
            match name.and_then(|name| self.document.def(name)) {
                Some(definition) => schema = definition,
                None => break,
            }
        }
        schema.clone()
    }
}

/// Returns whether a schema says which kind of value it accepts.
pub(super) fn has_form(schema: &Value) -> bool {
    FORMS.iter().any(|keyword| schema.get(keyword).is_some())
}

/// Returns whether a schema has more than one part with members or a type.
fn is_composed(keywords: &Map<String, Value>) -> bool {
    let beside = ["properties", "additionalProperties", "anyOf", "oneOf"];
    // With `type` beside it, a single part would not be recognized as another name of its target.
    let beside = beside.iter().any(|keyword| keywords.contains_key(*keyword))
        || keywords.get("type").is_some_and(|kind| kind == "object");
    match (
        keywords.get("allOf").and_then(Value::as_array),
        keywords.get("$ref"),
    ) {
        (Some(parts), _) if parts.len() != 1 => true,
        (Some(_), Some(_)) => true,
        (None, None) => false,
        _ => beside,
    }
}

/// Removes a keyword.
fn without(schema: &mut Cow<'_, Value>, keyword: &str) {
    if schema.get(keyword).is_some()
        && let Some(keywords) = schema.to_mut().as_object_mut()
    {
        keywords.shift_remove(keyword);
    }
}

/// Returns the only values that a schema accepts.
fn constants(schema: &Value) -> Option<Vec<Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value.clone()]),
        None => schema.get("enum")?.as_array().cloned(),
    }
}

/// Returns the `type` of values that all have the same.
fn kind(values: &[Value]) -> Option<Value> {
    let all = |is: fn(&Value) -> bool| values.iter().all(is);
    let kind = match () {
        () if all(Value::is_null) => "null",
        () if all(Value::is_boolean) => "boolean",
        () if all(|value| value.is_i64() || value.is_u64()) => "integer",
        () if all(Value::is_number) => "number",
        () if all(Value::is_string) => "string",
        () => return None,
    };
    Some(kind.into())
}

/// Returns a union with a branch for each of several types.
fn by_kind(schema: &Value, kinds: &[Value]) -> Value {
    let mut rest = schema.clone();
    let mut outer = Map::new();
    if let Some(keywords) = rest.as_object_mut() {
        for keyword in ["description", "title", "default", "deprecated", "examples"] {
            outer.extend(keywords.shift_remove_entry(keyword));
        }
    }
    let branches = kinds.iter().map(|kind| {
        let mut branch = rest.clone();
        if let Some(keywords) = branch.as_object_mut() {
            let own = |(kind_of, _): &(&str, &str)| kind == kind_of;
            let foreign = BY_KIND.iter().filter(|row| !own(row));
            foreign.for_each(|(_, keyword)| drop(keywords.shift_remove(*keyword)));
            keywords.insert("type".into(), kind.clone());
            keywords.insert("title".into(), kind.clone());
        }
        branch
    });
    outer.insert("anyOf".into(), branches.collect());
    Value::Object(outer)
}
