//! What a schema looks like, for comparing: its kind, variants and bounds.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::lower::{branches, tag, target};

/// The definition that a schema refers to.
pub(super) fn definition(schema: &Value) -> Option<&str> {
    target(schema)?.strip_prefix("#/$defs/")
}

pub(super) fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The type of a value, in words.
pub(super) fn kind(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(other) => other.to_string(),
        None => {
            let names: BTreeSet<&str> = branches(schema)
                .into_iter()
                .flat_map(|(_, branches)| branches)
                .filter_map(|branch| branch.get("type")?.as_str())
                .collect();
            let names: Vec<&str> = names.into_iter().collect();
            match names.as_slice() {
                ["string"] => "one of several texts".into(),
                ["integer"] => "integer".into(),
                _ => "one of several forms".into(),
            }
        }
    }
}

/// The variants of a union that have a name, by name.
pub(super) fn variants(schema: &Value) -> Vec<(String, &Value)> {
    let tag = tag(schema);
    let all = branches(schema).map_or(&[][..], |(_, branches)| branches.as_slice());
    all.iter()
        .enumerate()
        .filter(|(_, branch)| !is_end(branch, all, tag.as_deref()))
        .map(|(index, branch)| {
            let constant = tag
                .as_deref()
                .and_then(|tag| branch.get("properties")?.get(tag)?.get("const"))
                .or_else(|| branch.get("const"))
                .map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
            let title = || Some(branch.get("title")?.as_str()?.to_owned());
            let name = || definition(branch).map(str::to_owned);
            let key = constant.or_else(title).or_else(name);
            (key.unwrap_or_else(|| index.to_string()), branch)
        })
        .collect()
}

/// Whether a union takes names that it does not list.
pub(super) fn is_open(schema: &Value) -> bool {
    let tag = tag(schema);
    branches(schema).is_some_and(|(_, branches)| {
        let is_end = |branch| is_end(branch, branches, tag.as_deref());
        branches.iter().any(is_end)
    })
}

/// Whether a branch of `all` takes the names that no other branch has.
fn is_end(branch: &Value, all: &[Value], tag: Option<&str>) -> bool {
    let value = match tag {
        Some(tag) => branch
            .get("properties")
            .and_then(|properties| properties.get(tag)),
        None => {
            let named = all.iter().any(|other| other.get("const").is_some());
            named.then_some(branch)
        }
    };
    value.is_some_and(|value| {
        let scalar = matches!(
            value.get("type").and_then(Value::as_str),
            Some("string" | "integer")
        );
        scalar && value.get("const").is_none()
    })
}

pub(super) fn requires(schema: &Value, name: &str) -> bool {
    list(schema, "required").iter().any(|one| one == name)
}

pub(super) fn number(schema: &Value, key: &str) -> Option<f64> {
    schema.get(key)?.as_f64()
}

pub(super) fn contains(outer: (i128, i128), inner: (i128, i128)) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// Whether `outer` has all members of `inner`, at any depth.
pub(super) fn within(inner: &Map<String, Value>, outer: &Map<String, Value>) -> bool {
    inner
        .iter()
        .all(|(key, value)| match (value, outer.get(key)) {
            (Value::Object(inner), Some(Value::Object(outer))) => within(inner, outer),
            (value, other) => Some(value) == other,
        })
}
