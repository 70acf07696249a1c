//! Values of a definition that are valid and unusual.
//!
//! The sampler reads the schema loosely; whoever uses it holds the value against
//! the validator and asks again when that disagrees.

use acp_schema::Document;
use serde_json::{Map, Value, json};

use super::random::Random;

/// How deep a value nests before only what is required is added.
const DEPTH: usize = 6;

/// Strings that implementations have stumbled over.
const STRINGS: [&str; 10] = [
    "",
    " ",
    "plain",
    "ünïcödé 漢字 🦀",
    "\u{2028}\u{2029}\u{feff}",
    "tab\tnewline\nreturn\rnull\u{0}",
    "\"quotes\" and \\backslashes\\ and \u{7f}",
    "{\"jsonrpc\":\"2.0\"}",
    "e\u{301}\u{202e}right to left",
    "null",
];

/// Numbers at the edges of types.
const NUMBERS: [i64; 8] = [0, 1, -1, 255, 65_535, 4_294_967_295, i64::MAX, i64::MIN];

/// Yields values of definitions.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
    pub(super) document: &'a Document,
    pub(super) random: &'a mut Random,
}

impl Sampler<'_> {
    /// A value of the definition `name`.
    pub(super) fn definition(&mut self, name: &str) -> Value {
        match self.document.def(name) {
            Some(schema) => self.value(schema, DEPTH),
            None => Value::Null,
        }
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.random.pick(values).cloned().unwrap_or_default();
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            return match self.document.def(name) {
                Some(target) => self.value(target, depth.saturating_sub(1)),
                None => Value::Null,
            };
        }
        let mut value = self.own(schema, depth);
        for part in members(schema, "allOf") {
            let part = self.value(part, depth);
            merge(&mut value, part);
        }
        let branches: Vec<&Value> = ["oneOf", "anyOf"]
            .into_iter()
            .flat_map(|union| members(schema, union))
            .collect();
        if let Some(branch) = self.random.pick(&branches) {
            let branch = self.value(branch, depth);
            merge(&mut value, branch);
        }
        value
    }

    /// What the schema says by itself, without what it refers to.
    fn own(&mut self, schema: &Value, depth: usize) -> Value {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => vec![],
        };
        match self.random.pick(&types).copied() {
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let most = if depth == 0 { 1 } else { 4 };
                let items = schema.get("items").unwrap_or(&Value::Null);
                let count = self.random.below(most);
                (0..count)
                    .map(|_| self.value(items, depth.saturating_sub(1)))
                    .collect()
            }
            Some("string") => self.string(),
            Some("integer") => {
                let value = self.random.pick(&NUMBERS).copied().unwrap_or_default();
                let least = schema.get("minimum").and_then(Value::as_i64);
                let most = schema.get("maximum").and_then(Value::as_i64);
                json!(value.clamp(least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX)))
            }
            Some("number") => json!([0.5, -0.0, 1e300, 3.0][self.random.below(4)]),
            Some("boolean") => json!(self.random.percent(50)),
            Some(_) => Value::Null,
            None if schema.get("oneOf").is_none()
                && schema.get("anyOf").is_none()
                && schema.get("allOf").is_none() =>
            {
                self.anything(2)
            }
            None => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required: Vec<&str> = members(schema, "required")
            .filter_map(Value::as_str)
            .collect();
        let mut object = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let wanted = depth > 0 && self.random.percent(40);
            if name == "_meta" && wanted {
                object.insert(name.clone(), self.meta());
            } else if wanted || required.contains(&name.as_str()) {
                let value = self.value(property, depth.saturating_sub(1));
                object.insert(name.clone(), value);
            }
        }
        // A member that a later version may define.
        if self.random.percent(20) {
            object.insert("xUnknown".into(), self.anything(2));
        }
        Value::Object(object)
    }

    fn meta(&mut self) -> Value {
        let mut meta = Map::new();
        meta.insert("traceparent".into(), self.string());
        meta.insert("example.com/x".into(), self.anything(3));
        Value::Object(meta)
    }

    fn string(&mut self) -> Value {
        json!(self.random.pick(&STRINGS).copied().unwrap_or_default())
    }

    /// Any JSON.
    pub(super) fn anything(&mut self, depth: usize) -> Value {
        match self.random.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.random.percent(50)),
            2 => json!(self.random.pick(&NUMBERS).copied().unwrap_or_default()),
            3 => self.string(),
            4 => json!([self.anything(depth - 1)]),
            _ => {
                let name = self.random.pick(&STRINGS).copied().unwrap_or_default();
                json!({name: self.anything(depth - 1)})
            }
        }
    }
}

/// The items of a member that is a list.
fn members<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Puts the members of one object into another; anything else takes its place.
fn merge(value: &mut Value, other: Value) {
    match (value, other) {
        (Value::Object(members), Value::Object(others)) => members.extend(others),
        (value, other) => *value = other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use acp_conformance::wire::{Party, Schema, Verdict};

    use super::*;

    #[test]
    fn most_samples_are_valid_and_hardly_any_two_are_alike() {
        let document = Document::v1().unwrap();
        let schema = Schema::v1().unwrap();
        let mut random = Random::new(7);
        for (method, definition) in [
            ("session/new", "NewSessionRequest"),
            ("session/prompt", "PromptRequest"),
            ("session/list", "ListSessionsRequest"),
        ] {
            let mut seen = HashSet::new();
            let mut valid = 0;
            for _ in 0..200 {
                let mut sampler = Sampler {
                    document: &document,
                    random: &mut random,
                };
                let sample = sampler.definition(definition);
                valid +=
                    usize::from(schema.params(Party::Client, method, &sample) == Verdict::Valid);
                seen.insert(sample.to_string());
            }
            assert!(valid > 120, "{method}: {valid} of 200 are valid");
            assert!(seen.len() > 80, "{method}: {} different ones", seen.len());
        }
    }
}
