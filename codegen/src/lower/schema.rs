//! What a schema says, without its Rust type.

use serde_json::{Map, Value};

use crate::ir::Constant;

/// Keywords that do not restrict a value.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "$comment",
];

/// Returns the branches of a `oneOf` or `anyOf`, with the keyword.
pub(crate) fn branches(schema: &Value) -> Option<(&'static str, &Vec<Value>)> {
    ["oneOf", "anyOf"]
        .into_iter()
        .find_map(|key| Some((key, schema.get(key)?.as_array()?)))
}

/// Returns whether a definition has no type.
pub(super) fn is_ignored(definition: Option<&Value>) -> bool {
    let flag = definition.and_then(|definition| definition.get("x-docs-ignore"));
    flag.is_some_and(|flag| flag == true)
}

/// Returns the description of a schema.
pub(super) fn docs(schema: &Value) -> Option<String> {
    Some(schema.get("description")?.as_str()?.trim().to_owned())
}

/// Returns whether a schema accepts any value.
pub(crate) fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(keywords) => keywords
            .keys()
            .all(|key| ANNOTATIONS.contains(&key.as_str()) || key.starts_with("x-")),
        _ => false,
    }
}

/// Returns the values of an enum of strings, closed or with a catch-all branch.
pub(super) fn text_values(schema: &Value) -> Option<Vec<Constant<String>>> {
    if let Some(values) = schema.get("enum") {
        let value = |value: &Value| {
            let text = value.as_str()?.to_owned();
            Some(Constant {
                name: text.clone(),
                docs: None,
                value: text,
            })
        };
        return values.as_array()?.iter().map(value).collect();
    }
    if let Some(text) = schema.get("const").and_then(Value::as_str) {
        return Some(vec![Constant {
            name: text.into(),
            docs: None,
            value: text.into(),
        }]);
    }
    let (_, branches) = branches(schema)?;
    let mut values = Vec::new();
    for branch in branches {
        if branch.get("type")?.as_str()? != "string" {
            return None;
        }
        match branch.get("const") {
            Some(text) => {
                let text = text.as_str()?.to_owned();
                values.push(Constant {
                    name: text.clone(),
                    docs: docs(branch),
                    value: text,
                });
            }
            // The catch-all branch: any other string.
            None => continue,
        }
    }
    (!values.is_empty()).then_some(values)
}

/// Returns the named values and the format of an integer.
pub(super) fn integer_values(schema: &Value) -> Option<(Vec<Constant<i64>>, String)> {
    if schema.get("type").and_then(Value::as_str) == Some("integer") {
        return Some((Vec::new(), integer_format(schema).to_owned()));
    }
    let (_, branches) = branches(schema)?;
    let mut values = Vec::new();
    let mut format = "int64";
    for branch in branches {
        if branch.get("type")?.as_str()? != "integer" {
            return None;
        }
        format = integer_format(branch);
        if let Some(number) = branch.get("const") {
            let name = branch.get("title")?.as_str()?.to_owned();
            values.push(Constant {
                name,
                docs: docs(branch),
                value: number.as_i64()?,
            });
        }
    }
    Some((values, format.to_owned()))
}

/// Returns whether two schemas are equal except for their descriptions.
pub(crate) fn same_facts(a: &Value, b: &Value) -> bool {
    fn facts(schema: &Value) -> Value {
        match schema {
            Value::Object(members) => {
                let facts = members.iter().filter(|(key, value)| {
                    !(matches!(key.as_str(), "description") && value.is_string())
                });
                facts
                    .map(|(key, value)| (key.clone(), facts_of(value)))
                    .collect()
            }
            other => facts_of(other),
        }
    }
    fn facts_of(value: &Value) -> Value {
        match value {
            Value::Object(_) => facts(value),
            Value::Array(items) => items.iter().map(facts_of).collect(),
            other => other.clone(),
        }
    }
    facts(a) == facts(b)
}

/// Escapes a name as a reference token of a JSON Pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the description of the catch-all branch of a union.
pub(super) fn unknown(schema: &Value) -> Option<String> {
    let tag = tag(schema);
    let (_, branches) = branches(schema)?;
    let is_open = |branch: &&Value| {
        let text = match &tag {
            Some(tag) => branch.pointer(&format!("/properties/{}", escape(tag))),
            None => Some(*branch),
        };
        text.is_some_and(|text| {
            text.get("type").is_some_and(|kind| kind == "string") && text.get("const").is_none()
        })
    };
    docs(branches.iter().find(is_open)?)
}

/// Returns the target of a `$ref`, alone or as the only item of an `allOf`.
pub(crate) fn target(schema: &Value) -> Option<&str> {
    schema
        .get("$ref")
        .or_else(|| wrapped(schema)?.get("$ref"))?
        .as_str()
}

/// Returns the only item of an `allOf`.
pub(super) fn wrapped(schema: &Value) -> Option<&Value> {
    match schema.get("allOf")?.as_array()?.as_slice() {
        [only] if schema.get("properties").is_none() => Some(only),
        _ => None,
    }
}

/// Returns the schema without `null`, if it accepts `null` and other values.
pub(crate) fn nullable(schema: &Value) -> Option<Value> {
    let mut inner = schema.clone();
    let mut has_null = false;
    if let Some(values) = inner.get_mut("enum").and_then(Value::as_array_mut) {
        let before = values.len();
        values.retain(|value| !value.is_null());
        has_null = values.len() < before && !values.is_empty();
    }
    if let Some(types) = schema.get("type").and_then(Value::as_array) {
        let mut rest: Vec<Value> = types.clone();
        rest.retain(|kind| kind != "null");
        if rest.is_empty() || rest.len() == types.len() {
            return None;
        }
        inner["type"] = match rest.as_slice() {
            [only] => only.clone(),
            _ => Value::Array(rest),
        };
        return Some(inner);
    }
    if has_null {
        return Some(inner);
    }
    let (key, branches) = branches(schema)?;
    let is_null = |branch: &Value| branch.get("type").is_some_and(|kind| kind == "null");
    // A branch with a title is a variant of the union. Without a title, `null` makes it optional.
    if !branches
        .iter()
        .any(|branch| is_null(branch) && branch.get("title").is_none())
    {
        return None;
    }
    let rest: Vec<Value> = branches
        .iter()
        .filter(|branch| !is_null(branch))
        .cloned()
        .collect();
    match rest.as_slice() {
        [only] => Some(only.clone()),
        _ => {
            inner[key] = Value::Array(rest);
            Some(inner)
        }
    }
}

/// Returns the format that states the width of an integer.
pub(crate) fn integer_format(schema: &Value) -> &str {
    let unsigned = schema
        .get("minimum")
        .and_then(Value::as_i64)
        .is_some_and(|least| least >= 0);
    match schema.get("format").and_then(Value::as_str) {
        Some(format) => format,
        None if unsigned => "uint64",
        None => "int64",
    }
}

/// Returns the smallest and largest number of an integer format; `None` for other formats.
#[cfg(feature = "tools")]
pub(crate) fn integer_range(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Returns the name of the tag: the member whose constant identifies a branch.
pub(crate) fn tag(schema: &Value) -> Option<String> {
    if let Some(name) = schema.pointer("/discriminator/propertyName") {
        return Some(name.as_str()?.to_owned());
    }
    let (_, branches) = branches(schema)?;
    branches.iter().find_map(|branch| {
        let properties = branch.get("properties")?.as_object()?;
        let is_tag =
            |(_, value): &(&String, &Value)| value.get("const").is_some_and(Value::is_string);
        properties.iter().find(is_tag).map(|(name, _)| name.clone())
    })
}

/// Returns whether an object has entries and nothing else.
pub(super) fn is_map(schema: &Value) -> bool {
    is_open(schema) && schema.get("properties").is_none() && branches(schema).is_none()
}

/// Returns whether the schema provides for members beside the properties.
pub(super) fn is_open(schema: &Value) -> bool {
    let stated = ["additionalProperties", "unevaluatedProperties"].iter();
    let mut stated = stated.filter_map(|keyword| schema.get(keyword));
    stated.any(|values| *values != Value::Bool(false))
        || schema.get("patternProperties").is_some()
        || names_others(schema)
}

/// Returns whether a conditional part of the schema names a member that is no property.
fn names_others(schema: &Value) -> bool {
    let known = |name: &str| schema.pointer(&format!("/properties/{}", escape(name)));
    let single = ["then", "else"]
        .iter()
        .filter_map(|keyword| schema.get(keyword));
    let named = ["dependentSchemas", "dependencies"].iter();
    let named = named.filter_map(|keyword| schema.get(keyword)?.as_object());
    let parts = single.chain(named.flat_map(Map::values));
    let mut names = parts.filter_map(|part| part.get("properties")?.as_object());
    names.any(|members| members.keys().any(|name| known(name).is_none()))
}
